package locale

import "strings"

// Thing is the kind of what an operation makes or changes, as an effect names it.
func Thing(lang, kind string) string {
	for _, before := range []string{"dropped_", "drop_", "end_", "done_", "no_", "reworded_", "retry_"} {
		kind = strings.TrimPrefix(kind, before)
	}
	kind = strings.TrimSuffix(kind, "s_before")
	for _, key := range []string{"thing." + kind, "noun." + NounOf(kind) + ".one"} {
		if _, ok := words[key]; ok {
			return Word(lang, key)
		}
	}
	return strings.ReplaceAll(kind, "_", " ")
}

// NounOf is the noun of the console that a kind of effects is.
func NounOf(kind string) string {
	if n := things[kind]; n != "" {
		return n
	}
	return kind
}

// things are kinds of effects by the nouns of the console that they are.
var things = map[string]string{"device": "cabinet", "account": "user", "token": "api_key", "exception": "cabinet_exception", "assignment": "broker_assignment",
	"third_party": "third_party_assignment", "endpoint": "webhook_url", "webhook_settings": "webhook_setting", "order_operation": "operation", "audit": "audit_line", "unaudited": "audit_line",
	"outbox": "webhook_log", "lane": "webhook_url", "reworded": "webhook_log", "oauth_client": "program", "oauth_grant": "program", "oauth": "program", "oauth_end": "program", "opening": "door_report", "locker_delivery": "delivery"}

var thingWords = map[string]texts{
	"thing.answer":            {"Answer", "答复", "答覆", "Réponse", "Antwort", "Respuesta"},
	"thing.approval":          {"Approval", "审批", "核准", "Approbation", "Freigabe", "Aprobación"},
	"thing.batch":             {"Reports of a cabinet", "快递柜上报", "智慧櫃回報", "Relevés de consigne", "Meldungen eines Schranks", "Informes de taquilla"},
	"thing.business_job":      {"Job of the business", "企业任务", "企業作業", "Tâche de l’entreprise", "Auftrag des Unternehmens", "Tarea de la empresa"},
	"thing.business_state":    {"State of the business", "企业状态", "企業狀態", "État de l’entreprise", "Stand des Unternehmens", "Estado de la empresa"},
	"thing.chat_attachment":   {"Attachment", "附件", "附件", "Pièce jointe", "Anhang", "Adjunto"},
	"thing.chat_message":      {"Message", "消息", "訊息", "Message", "Nachricht", "Mensaje"},
	"thing.chat_read":         {"Read mark", "已读标记", "已讀標記", "Marque de lecture", "Lesemarke", "Marca de lectura"},
	"thing.code":              {"Code", "取件码", "取件碼", "Code", "Code", "Código"},
	"thing.command":           {"Command to the cabinet", "发往快递柜的指令", "傳往智慧櫃的指令", "Ordre à la consigne", "Befehl an den Schrank", "Orden a la taquilla"},
	"thing.compartment":       {"Compartment", "格口", "格口", "Casier", "Fach", "Compartimento"},
	"thing.conversation":      {"Conversation", "对话", "對話", "Conversation", "Gespräch", "Conversación"},
	"thing.device_fault":      {"Fault of the cabinet", "快递柜故障", "智慧櫃故障", "Défaut de la consigne", "Fehler des Schranks", "Fallo de la taquilla"},
	"thing.device_order":      {"Order of the cabinet", "柜端订单", "櫃端訂單", "Commande de la consigne", "Auftrag des Schranks", "Pedido de la taquilla"},
	"thing.door":              {"Door", "柜门", "櫃門", "Porte", "Tür", "Puerta"},
	"thing.driver_place":      {"Place of the driver", "司机位置", "司機位置", "Position du livreur", "Ort des Fahrers", "Posición del conductor"},
	"thing.enrolment":         {"Enrolment of the cabinet", "快递柜接入", "智慧櫃接入", "Enrôlement de la consigne", "Anmeldung des Schranks", "Alta de la taquilla"},
	"thing.reminder":          {"Reminder", "提醒", "提醒", "Rappel", "Erinnerung", "Recordatorio"},
	"thing.httpdevice":        {"Device over HTTP", "HTTP 设备", "HTTP 裝置", "Appareil HTTP", "HTTP-Gerät", "Dispositivo HTTP"},
	"thing.httpnonce":         {"Call of a device", "设备请求", "裝置請求", "Appel d’un appareil", "Aufruf eines Geräts", "Llamada de un dispositivo"},
	"thing.mock":              {"Mock locker", "模拟柜", "模擬櫃", "Consigne fictive", "Testschrank", "Taquilla simulada"},
	"thing.epoch":             {"Store of the cabinet", "快递柜存储", "智慧櫃儲存", "Mémoire de la consigne", "Speicher des Schranks", "Almacén de la taquilla"},
	"thing.event":             {"Tracking event", "追踪事件", "追蹤事件", "Événement de suivi", "Sendungsereignis", "Evento de seguimiento"},
	"thing.failure":           {"Failed sign-in", "登录失败记录", "登入失敗紀錄", "Échec de connexion", "Fehlgeschlagene Anmeldung", "Inicio de sesión fallido"},
	"thing.file":              {"File", "文件", "檔案", "Fichier", "Datei", "Archivo"},
	"thing.gap":               {"Gap in reports", "上报缺口", "回報缺口", "Trou dans les relevés", "Lücke in den Meldungen", "Hueco en los informes"},
	"thing.job":               {"Job", "任务", "作業", "Tâche", "Auftragslauf", "Tarea"},
	"thing.job_row":           {"Row of a job", "任务行", "作業列", "Ligne de tâche", "Zeile eines Laufs", "Fila de tarea"},
	"thing.job_step":          {"Step of a job", "任务步骤", "作業步驟", "Étape de tâche", "Schritt eines Laufs", "Paso de tarea"},
	"thing.limit_login":       {"Limit of sign-ins", "登录限制", "登入限制", "Limite de connexions", "Grenze der Anmeldungen", "Límite de inicios de sesión"},
	"thing.live":              {"Live event", "实时事件", "即時事件", "Événement en direct", "Live-Ereignis", "Evento en directo"},
	"thing.login_failure":     {"Failed sign-in", "登录失败记录", "登入失敗紀錄", "Échec de connexion", "Fehlgeschlagene Anmeldung", "Inicio de sesión fallido"},
	"thing.notification":      {"Notification", "通知", "通知", "Notification", "Benachrichtigung", "Notificación"},
	"thing.observation":       {"Observation", "观测", "觀測", "Constat", "Beobachtung", "Observación"},
	"thing.order_batch":       {"Batch of orders", "订单批次", "訂單批次", "Lot de commandes", "Auftragsstapel", "Lote de pedidos"},
	"thing.order_term":        {"Search terms of the order", "订单检索词", "訂單檢索詞", "Termes de recherche de la commande", "Suchbegriffe des Auftrags", "Términos de búsqueda del pedido"},
	"thing.proof_guess":       {"Tries at a proof", "凭证尝试次数", "憑證嘗試次數", "Essais de preuve", "Versuche am Nachweis", "Intentos de prueba"},
	"thing.push_token":        {"Telephone of the app", "应用设备", "應用程式裝置", "Téléphone de l’application", "Telefon der App", "Teléfono de la aplicación"},
	"thing.push":              {"Push notification", "推送通知", "推播通知", "Notification", "Push-Nachricht", "Notificación"},
	"thing.refused":           {"Refused report", "被拒的上报", "被拒的回報", "Relevé refusé", "Abgelehnte Meldung", "Informe rechazado"},
	"thing.replay_job":        {"Replay of webhooks", "Webhook 重放", "Webhook 重送", "Rejeu de webhooks", "Wiederholung von Webhooks", "Reenvío de webhooks"},
	"thing.reset_request":     {"Request for a new password", "重置密码请求", "重設密碼請求", "Demande de nouveau mot de passe", "Anfrage nach neuem Passwort", "Solicitud de nueva contraseña"},
	"thing.row":               {"Entry", "条目", "項目", "Entrée", "Eintrag", "Entrada"},
	"thing.second_factor":     {"Second factor", "第二验证因素", "第二驗證因素", "Second facteur", "Zweiter Faktor", "Segundo factor"},
	"thing.seen":              {"Last contact of the cabinet", "快递柜最近联系", "智慧櫃最近聯繫", "Dernier contact de la consigne", "Letzter Kontakt des Schranks", "Último contacto de la taquilla"},
	"thing.setup":             {"Setup", "初始设置", "初始設定", "Mise en place", "Einrichtung", "Puesta en marcha"},
	"thing.diagnosis":         {"Diagnosis", "诊断", "診斷", "Diagnostic", "Diagnose", "Diagnóstico"},
	"thing.staff_list":        {"Staff codes of a cabinet", "快递柜的员工码", "智慧櫃的員工碼", "Codes du personnel d’une consigne", "Mitarbeitercodes eines Schranks", "Códigos del personal de una taquilla"},
	"thing.staff_rota":        {"Staff codes", "员工码", "員工碼", "Codes du personnel", "Mitarbeitercodes", "Códigos del personal"},
	"thing.staff_code_holder": {"Staff member with codes", "有员工码的成员", "有員工碼的成員", "Membre avec codes", "Mitglied mit Codes", "Miembro con códigos"},
	"thing.shelf":             {"Shelf", "货架", "貨架", "Étagère", "Regal", "Estante"},
	"thing.shipment":          {"Shipment", "运单", "貨運單", "Envoi", "Sendung", "Envío"},
	"thing.ticket":            {"Sign-in ticket", "登录凭据", "登入憑據", "Ticket de connexion", "Anmeldeschein", "Pase de inicio de sesión"},
	"thing.uncheck_job":       {"Job", "任务", "作業", "Tâche", "Auftragslauf", "Tarea"},
	"thing.unfinished":        {"Unfinished answer", "未完成的答复", "未完成的答覆", "Réponse inachevée", "Unfertige Antwort", "Respuesta sin terminar"},
	"thing.judged":            {"Judged event", "已判定的事件", "已判定的事件", "Événement jugé", "Beurteiltes Ereignis", "Evento juzgado"},
	"thing.unsettled":         {"Checkpoint of a timeline", "时间线检查点", "時間軸檢查點", "Point de reprise d’une chronologie", "Prüfpunkt eines Verlaufs", "Punto de control de un historial"},
	"thing.withdrawn":         {"Withdrawn event", "撤回的事件", "撤回的事件", "Événement retiré", "Zurückgezogenes Ereignis", "Evento retirado"},
}
