package locale

import "strings"

// QuickTexts are the texts that a form offers for the reason of an operation, the most
// common first; none for other members and operations.
func QuickTexts(lang, operation, member string) []string {
	key := "quick." + operation
	if _, ok := quickTexts[key]; !ok || member != "reason" && member != "note" {
		return nil
	}
	return strings.Split(Word(lang, key), "; ")
}

// quickTexts are reasons of operations, parted by semicolons.
var quickTexts = map[string]texts{
	"quick.work_items.close": {
		"Looked at on site; Repaired; The parcel was found; False alarm",
		"已现场查看; 已修复; 已找到包裹; 误报", "已現場查看; 已修復; 已找到包裹; 誤報",
		"Vérifié sur place; Réparé; Le colis a été retrouvé; Fausse alerte",
		"Vor Ort angesehen; Repariert; Das Paket wurde gefunden; Fehlalarm",
		"Revisado en el sitio; Reparado; Se encontró el paquete; Falsa alarma"},
	"quick.orders.hold": {
		"Address is not clear; Recipient asked for it; Payment is open; Waiting for goods",
		"地址不清楚; 收件人要求; 尚未付款; 等待货物", "地址不清楚; 收件人要求; 尚未付款; 等待貨物",
		"Adresse incertaine; Demande du destinataire; Paiement en attente; Marchandise en attente",
		"Adresse unklar; Empfänger hat darum gebeten; Zahlung offen; Ware fehlt noch",
		"La dirección no está clara; Lo pidió el destinatario; Pago pendiente; Falta la mercancía"},
	"quick.orders.cancel": {
		"Customer asked for it; Entered twice; Goods are not available; Address cannot be reached",
		"客户要求; 重复录入; 货物缺货; 地址无法送达", "客戶要求; 重複輸入; 貨物缺貨; 地址無法送達",
		"Demande du client; Saisie en double; Marchandise indisponible; Adresse inaccessible",
		"Kunde hat darum gebeten; Doppelt erfasst; Ware nicht verfügbar; Adresse nicht erreichbar",
		"Lo pidió el cliente; Introducido dos veces; Mercancía no disponible; Dirección inaccesible"},
	"quick.orders.release": {
		"Address is clear now; Payment has arrived; Goods have arrived",
		"地址已确认; 已收到付款; 货物已到", "地址已確認; 已收到付款; 貨物已到",
		"Adresse confirmée; Paiement reçu; Marchandise arrivée",
		"Adresse ist geklärt; Zahlung ist da; Ware ist da",
		"La dirección está clara; Pago recibido; Mercancía recibida"},
	"quick.orders.reroute": {
		"Recipient has moved; Wrong address; Recipient asked for another place",
		"收件人已搬家; 地址错误; 收件人要求改送别处", "收件人已搬家; 地址錯誤; 收件人要求改送別處",
		"Le destinataire a déménagé; Mauvaise adresse; Le destinataire demande un autre lieu",
		"Empfänger ist umgezogen; Falsche Adresse; Empfänger wünscht einen anderen Ort",
		"El destinatario se ha mudado; Dirección equivocada; El destinatario pidió otro lugar"},
	"quick.orders.reschedule": {
		"Recipient asked for another day; Recipient is not at home; Vehicle has broken down; Weather",
		"收件人要求改天; 收件人不在家; 车辆故障; 天气原因", "收件人要求改天; 收件人不在家; 車輛故障; 天氣原因",
		"Le destinataire demande un autre jour; Destinataire absent; Véhicule en panne; Météo",
		"Empfänger wünscht einen anderen Tag; Empfänger nicht da; Fahrzeug ausgefallen; Wetter",
		"El destinatario pidió otro día; El destinatario no está; Vehículo averiado; Mal tiempo"},
	"quick.orders.take_back": {
		"Vehicle has broken down; Driver is ill; Too many stops; Recipient asked for another day",
		"车辆故障; 司机生病; 停靠点过多; 收件人要求改天", "車輛故障; 司機生病; 停靠點過多; 收件人要求改天",
		"Véhicule en panne; Chauffeur malade; Trop d’arrêts; Le destinataire demande un autre jour",
		"Fahrzeug ausgefallen; Fahrer ist krank; Zu viele Stopps; Empfänger wünscht einen anderen Tag",
		"Vehículo averiado; Conductor enfermo; Demasiadas paradas; El destinatario pidió otro día"},
	"quick.orders.override": {
		"Confirmed by telephone; Recorded on paper; Scanner failed",
		"电话确认; 纸质记录; 扫描器故障", "電話確認; 紙本記錄; 掃描器故障",
		"Confirmé par téléphone; Noté sur papier; Lecteur en panne",
		"Telefonisch bestätigt; Auf Papier festgehalten; Scanner ausgefallen",
		"Confirmado por teléfono; Anotado en papel; Falló el lector"},
	"quick.interceptions.reject": {
		"Too late; Recipient did not agree; Not permitted by contract",
		"太晚了; 收件人不同意; 合同不允许", "太晚了; 收件人不同意; 合約不允許",
		"Trop tard; Refus du destinataire; Non prévu au contrat",
		"Zu spät; Empfänger ist nicht einverstanden; Vom Vertrag nicht vorgesehen",
		"Demasiado tarde; El destinatario no está de acuerdo; No lo permite el contrato"},
	"quick.interceptions.fail": {
		"Already handed over; Driver could not be reached; Parcel was not found",
		"已经交付; 联系不上司机; 未找到包裹", "已經交付; 聯絡不上司機; 未找到包裹",
		"Déjà remis; Chauffeur injoignable; Colis introuvable",
		"Schon übergeben; Fahrer nicht erreicht; Paket nicht gefunden",
		"Ya entregado; No se localizó al conductor; No se encontró el paquete"},
	"quick.smart_lockers.grids.unblock": {
		"Repaired; Cleaned; Checked and found in order",
		"已修好; 已清洁; 检查正常", "已修好; 已清潔; 檢查正常",
		"Réparé; Nettoyé; Contrôlé, en ordre",
		"Repariert; Gereinigt; Geprüft und in Ordnung",
		"Reparado; Limpio; Revisado y correcto"},
	"quick.smart_lockers.devices.replace_hardware": {
		"Computer does not start; Board is broken; Damaged by water; Vandalism",
		"计算机无法启动; 控制板损坏; 进水损坏; 人为破坏", "電腦無法啟動; 控制板損壞; 進水損壞; 人為破壞",
		"L’ordinateur ne démarre pas; Carte en panne; Dégât des eaux; Vandalisme",
		"Rechner startet nicht; Platine defekt; Wasserschaden; Vandalismus",
		"El ordenador no arranca; Placa averiada; Daños por agua; Vandalismo"},
	"quick.smart_lockers.devices.retire": {
		"Site was closed; Replaced by a new cabinet; Beyond repair",
		"地点已关闭; 已更换新柜机; 无法修复", "地點已關閉; 已更換新櫃機; 無法修復",
		"Site fermé; Remplacée par une nouvelle consigne; Irréparable",
		"Standort geschlossen; Durch neuen Schrank ersetzt; Nicht zu reparieren",
		"Emplazamiento cerrado; Sustituida por otra; No tiene reparación"},
	"quick.smart_lockers.devices.command": {
		"Recipient cannot collect; Shows an old state; Technician asked for it",
		"收件人无法取件; 显示的状态过旧; 技术人员要求", "收件人無法取件; 顯示的狀態過舊; 技術人員要求",
		"Le destinataire ne peut pas retirer; État affiché ancien; Demande du technicien",
		"Empfänger kann nicht abholen; Angezeigter Stand ist alt; Techniker hat darum gebeten",
		"El destinatario no puede recoger; Muestra un estado antiguo; Lo pidió el técnico"},
	"quick.orders.ready": {
		"Goods are packed; Checked by hand",
		"货物已打包; 人工核对", "貨物已打包; 人工核對",
		"Marchandise emballée; Contrôlé à la main",
		"Ware ist gepackt; Von Hand geprüft",
		"Mercancía embalada; Revisado a mano"},
	"quick.orders.intercept": {
		"Customer asked for it; Wrong goods; Suspected fraud; Payment was withdrawn",
		"客户要求; 发错货物; 疑似欺诈; 付款被撤回", "客戶要求; 發錯貨物; 疑似詐騙; 付款被撤回",
		"Demande du client; Mauvaise marchandise; Soupçon de fraude; Paiement annulé",
		"Kunde hat darum gebeten; Falsche Ware; Verdacht auf Betrug; Zahlung zurückgezogen",
		"Lo pidió el cliente; Mercancía equivocada; Sospecha de fraude; Pago anulado"},
	"quick.smart_lockers.devices.open": {
		"Recipient cannot open it; Look inside; Repair; Cleaning",
		"收件人打不开; 查看内部; 维修; 清洁", "收件人打不開; 查看內部; 維修; 清潔",
		"Le destinataire ne peut pas ouvrir; Regarder à l’intérieur; Réparation; Nettoyage",
		"Empfänger kann es nicht öffnen; Hineinsehen; Reparatur; Reinigung",
		"El destinatario no puede abrir; Mirar dentro; Reparación; Limpieza"},
	"quick.smart_lockers.devices.diagnose": {
		"Doors do not open; Cabinet is slow; For support; After a repair",
		"门打不开; 快递柜反应慢; 供技术支持; 维修后", "門打不開; 智慧櫃反應慢; 供技術支援; 維修後",
		"Les portes ne s’ouvrent pas; Consigne lente; Pour l’assistance; Après une réparation",
		"Türen öffnen nicht; Schrank ist langsam; Für den Support; Nach einer Reparatur",
		"Las puertas no se abren; Taquilla lenta; Para asistencia; Tras una reparación"},
	"quick.smart_lockers.devices.test_channel": {
		"Lock is stuck; After a repair; Wiring is checked",
		"锁卡住; 维修后; 检查接线", "鎖卡住; 維修後; 檢查接線",
		"Serrure bloquée; Après une réparation; Vérification du câblage",
		"Schloss klemmt; Nach einer Reparatur; Verdrahtung prüfen",
		"Cerradura atascada; Tras una reparación; Revisión del cableado"},
	"quick.smart_lockers.devices.opening_qr": {
		"Cabinet has no network; Look inside; Repair; Cleaning",
		"柜机没有网络; 查看内部; 维修; 清洁", "櫃機沒有網路; 查看內部; 維修; 清潔",
		"La consigne n’a pas de réseau; Regarder à l’intérieur; Réparation; Nettoyage",
		"Schrank hat kein Netz; Hineinsehen; Reparatur; Reinigung",
		"La taquilla no tiene red; Mirar dentro; Reparación; Limpieza"},
	"quick.smart_lockers.devices.report_stolen": {
		"Cabinet is gone; Computer was taken out; Site reported a break-in",
		"柜机不见了; 计算机被拆走; 现场报告有人闯入", "櫃機不見了; 電腦被拆走; 現場回報有人闖入",
		"La consigne a disparu; L’ordinateur a été emporté; Le site signale une effraction",
		"Schrank ist weg; Rechner wurde ausgebaut; Standort meldet einen Einbruch",
		"La taquilla ha desaparecido; Se llevaron el ordenador; El emplazamiento avisó de un robo"},
	"quick.smart_lockers.grids.block": {
		"Lock is broken; Door does not close; Dirty; Reserved",
		"锁已损坏; 门关不上; 不干净; 已预留", "鎖已損壞; 門關不上; 不乾淨; 已預留",
		"Serrure en panne; La porte ne ferme pas; Sale; Réservé",
		"Schloss ist defekt; Tür schließt nicht; Verschmutzt; Reserviert",
		"Cerradura averiada; La puerta no cierra; Sucio; Reservado"},
	"quick.smart_lockers.grids.clear": {
		"Found empty; Parcel was taken out; Recipient has it already",
		"检查为空; 包裹已取出; 收件人已拿到", "檢查為空; 包裹已取出; 收件人已拿到",
		"Trouvé vide; Colis retiré; Le destinataire l’a déjà",
		"Leer vorgefunden; Paket wurde entnommen; Empfänger hat es schon",
		"Encontrado vacío; Se sacó el paquete; El destinatario ya lo tiene"},
	"quick.smart_lockers.deliveries.cancel": {
		"Customer asked for it; Entered twice; Parcel does not fit; Recipient will not come",
		"客户要求; 重复录入; 包裹放不下; 收件人不会来取", "客戶要求; 重複輸入; 包裹放不下; 收件人不會來取",
		"Demande du client; Saisie en double; Le colis ne tient pas; Le destinataire ne viendra pas",
		"Kunde hat darum gebeten; Doppelt erfasst; Paket passt nicht hinein; Empfänger kommt nicht",
		"Lo pidió el cliente; Introducido dos veces; El paquete no cabe; El destinatario no vendrá"},
	"quick.smart_lockers.deliveries.expire": {
		"Recipient will not come; Compartment is needed; Parcel was returned",
		"收件人不会来取; 需要使用格口; 包裹已退回", "收件人不會來取; 需要使用格口; 包裹已退回",
		"Le destinataire ne viendra pas; Casier nécessaire; Colis retourné",
		"Empfänger kommt nicht; Fach wird gebraucht; Paket ging zurück",
		"El destinatario no vendrá; Se necesita el compartimento; El paquete se devolvió"},
}
