package locale

import "github.com/postern-io/postern/protocol/otep"

// statuses are the labels of tracking statuses.
var statuses = map[otep.Code]texts{
	otep.InformationSubmitted: {"Information submitted", "已提交信息", "已提交資訊", "Informations transmises", "Daten übermittelt", "Datos enviados"},
	otep.BookingConfirmed:     {"Booking confirmed", "预订已确认", "預訂已確認", "Réservation confirmée", "Buchung bestätigt", "Reserva confirmada"},
	otep.AwaitingPickup:       {"Waiting for pickup", "等待揽收", "等待取件", "En attente d’enlèvement", "Wartet auf Abholung", "En espera de recogida"},
	otep.OutForPickup:         {"Driver on the way to pick up", "司机正前往揽收", "司機正前往取件", "Chauffeur en route pour l’enlèvement", "Fahrer unterwegs zur Abholung", "Conductor de camino a la recogida"},
	otep.PickedUp:             {"Picked up", "已揽收", "已取件", "Enlevé", "Abgeholt", "Recogido"},
	otep.PickupFailed:         {"Pickup failed", "揽收失败", "取件失敗", "Échec de l’enlèvement", "Abholung gescheitert", "Recogida fallida"},
	otep.PickupRescheduled:    {"Pickup rescheduled", "揽收已改期", "取件已改期", "Enlèvement reporté", "Abholung verschoben", "Recogida reprogramada"},
	otep.Received:             {"Received at facility", "已到站入库", "已於站點收件", "Reçu au centre", "Im Depot eingegangen", "Recibido en el centro"},
	otep.ArrivalScan:          {"Arrived at facility", "已到达站点", "已到達站點", "Arrivé dans un centre", "Im Depot angekommen", "Llegada al centro"},
	otep.InTransit:            {"In transit", "运输中", "運送中", "En transit", "Unterwegs", "En tránsito"},
	otep.PackageOutbound:      {"Left facility", "已离站", "已離站", "A quitté le centre", "Depot verlassen", "Salió del centro"},
	otep.RemovedFromRoute:     {"Removed from route", "已移出路线", "已移出路線", "Retiré de la tournée", "Aus der Tour genommen", "Retirado de la ruta"},
	otep.RouteCancelled:       {"Route cancelled", "路线已取消", "路線已取消", "Tournée annulée", "Tour abgesagt", "Ruta cancelada"},
	otep.OutForDelivery:       {"Out for delivery", "派送中", "配送中", "En cours de livraison", "In Zustellung", "En reparto"},
	otep.Delivered:            {"Delivered", "已送达", "已送達", "Livré", "Zugestellt", "Entregado"},
	otep.DeliveryFailed:       {"Delivery attempt failed", "派送未成功", "派送未成功", "Tentative de livraison échouée", "Zustellversuch erfolglos", "Intento de entrega fallido"},
	otep.DeliveryRescheduled:  {"Delivery rescheduled", "派送已改期", "配送已改期", "Livraison reportée", "Zustellung verschoben", "Entrega reprogramada"},
	otep.ReturnToSender:       {"Returned to sender", "已退回寄件人", "已退回寄件人", "Retourné à l’expéditeur", "Zurück an den Absender", "Devuelto al remitente"},
	otep.RejectedByRecipient:  {"Rejected by recipient", "收件人拒收", "收件人拒收", "Refusé par le destinataire", "Vom Empfänger abgelehnt", "Rechazado por el destinatario"},
	otep.Cancelled:            {"Cancelled", "已取消", "已取消", "Annulé", "Storniert", "Cancelado"},
	otep.AvailableForPickup:   {"Ready for collection", "可取件", "可取件", "Prêt à retirer", "Abholbereit", "Listo para recoger"},
	otep.PickupOverdue:        {"Collection overdue", "取件已逾期", "取件已逾期", "Retrait en retard", "Abholung überfällig", "Recogida vencida"},
	otep.RemovedFromDevice:    {"Removed from the locker", "已从快递柜取出", "已從智慧櫃取出", "Retiré de la consigne", "Aus dem Schrank entnommen", "Retirado de la taquilla"},
	otep.Stored:               {"Stored", "已入仓", "已入倉", "Entreposé", "Eingelagert", "Almacenado"},
	otep.ShipoutRequested:     {"Release from storage requested", "已申请出仓", "已申請出倉", "Sortie d’entrepôt demandée", "Auslagerung angefordert", "Salida de almacén solicitada"},
	otep.ShipoutReleased:      {"Released from storage", "已出仓", "已出倉", "Sorti d’entrepôt", "Ausgelagert", "Salió del almacén"},
	otep.Loading:              {"Being loaded", "装车中", "裝車中", "Chargement en cours", "Wird verladen", "Cargando"},
	otep.Unloading:            {"Being unloaded", "卸货中", "卸貨中", "Déchargement en cours", "Wird entladen", "Descargando"},
	otep.Preparing:            {"Being prepared", "准备中", "準備中", "En préparation", "Wird zubereitet", "En preparación"},
	otep.Ready:                {"Ready for the courier", "待骑手取餐", "等待外送員取餐", "Prêt pour le coursier", "Bereit für den Kurier", "Listo para el repartidor"},
	otep.Intercepted:          {"Stopped on request", "已应要求拦截", "已應要求攔截", "Intercepté sur demande", "Auf Wunsch angehalten", "Interceptado a petición"},
	otep.CustomsHold:          {"Held by customs", "海关查验中", "海關查驗中", "Retenu en douane", "Vom Zoll angehalten", "Retenido en aduana"},
}

// descriptions are the public labels that differ from the status's own.
var descriptions = map[otep.Code]texts{
	otep.OutForDelivery: {"Start delivery", "开始派送", "開始配送", "Départ en livraison", "Zustellung begonnen", "Inicio del reparto"},
	otep.Delivered:      {"Delivery success", "派送成功", "配送成功", "Livraison réussie", "Erfolgreich zugestellt", "Entrega realizada"},
}

// headlines are what pages say where the public label is a word of the trade.
var headlines = map[otep.Code]texts{
	otep.InformationSubmitted: {"Announced by the sender", "寄件人已登记", "寄件人已登記", "Annoncé par l’expéditeur", "Vom Absender angekündigt", "Anunciado por el remitente"},
	otep.RemovedFromRoute:     {"Being planned again", "重新规划中", "重新規劃中", "Nouvelle planification", "Wird neu geplant", "Se planifica de nuevo"},
	otep.RouteCancelled:       {"Being planned again", "重新规划中", "重新規劃中", "Nouvelle planification", "Wird neu geplant", "Se planifica de nuevo"},
}

// next tells the recipient what happens after a status.
var next = map[otep.Code]texts{
	otep.InformationSubmitted: {"The carrier has announced your parcel. If it goes to a locker, you get a message with your code once it is there.", "承运商已登记您的包裹。若送至快递柜，到达后您将收到含取件码的通知。", "承運商已登記您的包裹。若送至快遞櫃，到達後您將收到含取件碼的通知。", "Le transporteur a annoncé votre colis. S’il est livré dans un casier, vous recevrez un message avec votre code dès qu’il y sera.", "Ihr Paket ist beim Zusteller angekündigt. Kommt es in ein Schließfach, erhalten Sie dann eine Nachricht mit Ihrem Code.", "El transportista ha anunciado su paquete. Si va a una taquilla, recibirá un mensaje con su código cuando esté allí."},
	otep.BookingConfirmed:     {"The transport is booked. The carrier collects your parcel next.", "运输已预订，承运商将前往揽收。", "運送已預訂，承運商將前往取件。", "Le transport est réservé. Le transporteur va enlever votre colis.", "Der Transport ist gebucht. Als Nächstes holt der Zusteller Ihr Paket ab.", "El transporte está reservado. Ahora el transportista recogerá su paquete."},
	otep.AwaitingPickup:       {"Your parcel is ready at the sender and waits for the carrier.", "包裹已备好，等待承运商揽收。", "包裹已備妥，等待承運商取件。", "Votre colis est prêt chez l’expéditeur et attend le transporteur.", "Ihr Paket liegt beim Absender bereit und wartet auf den Zusteller.", "Su paquete está listo en origen y espera al transportista."},
	otep.OutForPickup:         {"A driver is on the way to collect your parcel from the sender.", "司机正前往寄件处揽收。", "司機正前往寄件處取件。", "Un chauffeur va chercher votre colis chez l’expéditeur.", "Ein Fahrer holt Ihr Paket gerade beim Absender ab.", "Un conductor va a recoger su paquete al remitente."},
	otep.PickedUp:             {"Your parcel is with the carrier and travels to you.", "包裹已由承运商接收，正在运往您处。", "包裹已由承運商收取，正運往您處。", "Le transporteur a votre colis ; il est en chemin.", "Ihr Paket ist beim Zusteller und auf dem Weg zu Ihnen.", "El transportista tiene su paquete y va hacia usted."},
	otep.PickupFailed:         {"The carrier will try again. You need to do nothing.", "承运商将再次尝试，您无需操作。", "承運商將再次嘗試，您無須操作。", "Le transporteur va réessayer. Vous n’avez rien à faire.", "Der Zusteller versucht es erneut. Sie müssen nichts tun.", "El transportista lo intentará de nuevo. No tiene que hacer nada."},
	otep.PickupRescheduled:    {"The carrier collects your parcel at a new time.", "承运商将在新的时间揽收。", "承運商將於新的時間取件。", "Le transporteur passera à un autre moment.", "Der Zusteller holt Ihr Paket zu einer neuen Zeit ab.", "El transportista lo recogerá en otro momento."},
	otep.Received:             {"Your parcel is at a facility and travels on soon.", "包裹已到达站点，即将继续运输。", "包裹已到達站點，即將繼續運送。", "Votre colis est dans un centre et repart bientôt.", "Ihr Paket ist in einem Depot und reist bald weiter.", "Su paquete está en un centro y seguirá pronto."},
	otep.ArrivalScan:          {"Your parcel is at a facility and travels on soon.", "包裹已到达站点，即将继续运输。", "包裹已到達站點，即將繼續運送。", "Votre colis est dans un centre et repart bientôt.", "Ihr Paket ist in einem Depot und reist bald weiter.", "Su paquete está en un centro y seguirá pronto."},
	otep.InTransit:            {"Your parcel is on its way to the next facility.", "包裹正运往下一站。", "包裹正運往下一站。", "Votre colis est en route vers le prochain centre.", "Ihr Paket ist unterwegs zum nächsten Depot.", "Su paquete va hacia el siguiente centro."},
	otep.PackageOutbound:      {"Your parcel is on its way to the next facility.", "包裹正运往下一站。", "包裹正運往下一站。", "Votre colis est en route vers le prochain centre.", "Ihr Paket ist unterwegs zum nächsten Depot.", "Su paquete va hacia el siguiente centro."},
	otep.RemovedFromRoute:     {"The carrier plans a new route for your parcel.", "承运商正在重新安排路线。", "承運商正在重新安排路線。", "Le transporteur prévoit une nouvelle tournée.", "Der Zusteller plant eine neue Tour für Ihr Paket.", "El transportista planifica otra ruta."},
	otep.RouteCancelled:       {"The carrier plans a new route for your parcel.", "承运商正在重新安排路线。", "承運商正在重新安排路線。", "Le transporteur prévoit une nouvelle tournée.", "Der Zusteller plant eine neue Tour für Ihr Paket.", "El transportista planifica otra ruta."},
	otep.OutForDelivery:       {"A courier has your parcel and brings it today.", "快递员正在派送您的包裹。", "快遞員正在配送您的包裹。", "Un livreur a votre colis et vous l’apporte.", "Ein Zusteller hat Ihr Paket und bringt es.", "Un repartidor lleva su paquete."},
	otep.DeliveryFailed:       {"The carrier will try again or choose another place. If you hear nothing by tomorrow, contact support with this number.", "承运商将再次尝试或更换地点。若明天仍无消息，请凭此单号联系客服。", "承運商將再次嘗試或更換地點。若明天仍無消息，請以此單號聯絡客服。", "Le transporteur va réessayer ou choisir un autre lieu. Sans nouvelles demain, contactez le support avec ce numéro.", "Der Zusteller versucht es erneut oder wählt einen anderen Ort. Hören Sie bis morgen nichts, nennen Sie dem Support diese Nummer.", "El transportista lo intentará de nuevo o elegirá otro lugar. Si mañana no sabe nada, llame a soporte con este número."},
	otep.DeliveryRescheduled:  {"Your parcel comes at a new time.", "包裹将在新的时间送达。", "包裹將於新的時間送達。", "Votre colis arrivera à un autre moment.", "Ihr Paket kommt zu einer neuen Zeit.", "Su paquete llegará en otro momento."},
	otep.ReturnToSender:       {"Your parcel goes back to the sender. Ask the sender about a new delivery.", "包裹正退回寄件人。如需重新派送请联系寄件人。", "包裹正退回寄件人。如需重新配送請聯絡寄件人。", "Votre colis retourne à l’expéditeur. Demandez-lui une nouvelle livraison.", "Ihr Paket geht zurück. Bitte den Absender nach einer neuen Lieferung fragen.", "Su paquete vuelve al remitente. Pregúntele por un nuevo envío."},
	otep.RejectedByRecipient:  {"The parcel was refused and goes back to the sender.", "包裹被拒收，将退回寄件人。", "包裹遭拒收，將退回寄件人。", "Le colis a été refusé et retourne à l’expéditeur.", "Das Paket wurde abgelehnt und geht zurück an den Absender.", "El paquete fue rechazado y vuelve al remitente."},
	otep.Cancelled:            {"This shipment was cancelled. Ask the sender if that surprises you.", "此货件已取消。如有疑问请联系寄件人。", "此貨件已取消。如有疑問請聯絡寄件人。", "Cet envoi a été annulé. Si cela vous étonne, demandez à l’expéditeur.", "Diese Sendung wurde storniert. Falls Sie das wundert, fragen Sie den Absender.", "Este envío fue cancelado. Si le sorprende, pregunte al remitente."},
	otep.Delivered:            {"All done. Nothing more happens with this parcel.", "已完成，此包裹不再有后续动态。", "已完成，此包裹不會再有後續動態。", "C’est terminé. Il ne se passera plus rien pour ce colis.", "Alles erledigt. Mit diesem Paket geschieht nichts mehr.", "Todo listo. No habrá más novedades de este paquete."},
	otep.AvailableForPickup:   {"Go to the locker and enter the code from your message, or show its QR code. The right door opens; close it when you have your parcel.", "请前往快递柜，输入通知中的取件码或出示二维码。对应柜门会打开；取件后请关门。", "請前往智慧櫃，輸入通知中的取件碼或出示 QR 碼。對應櫃門會打開；取件後請關門。", "Allez à la consigne et saisissez le code de votre message, ou présentez son QR code. La bonne porte s’ouvre ; refermez-la ensuite.", "Gehen Sie zum Schrank und geben Sie den Code aus Ihrer Nachricht ein oder zeigen Sie den QR-Code. Die richtige Tür öffnet sich; bitte danach schließen.", "Vaya a la taquilla e introduzca el código de su mensaje o muestre el QR. Se abrirá la puerta correcta; ciérrela al terminar."},
	otep.PickupOverdue:        {"Your parcel is still in the locker and your code still works. Collect it soon, before it goes back.", "包裹仍在柜中，取件码仍有效。请尽快取件，以免被退回。", "包裹仍在櫃中，取件碼仍有效。請儘快取件，以免被退回。", "Votre colis est toujours en consigne et votre code marche encore. Retirez-le vite avant son retour.", "Ihr Paket liegt noch im Schrank und Ihr Code gilt noch. Bitte bald abholen, bevor es zurückgeht.", "Su paquete sigue en la taquilla y su código aún sirve. Recójalo pronto, antes de que lo devuelvan."},
	otep.RemovedFromDevice:    {"Staff took your parcel out of the locker. Contact support with this number to learn where it is.", "工作人员已将包裹从柜中取出。请凭此单号联系客服了解去向。", "工作人員已將包裹從櫃中取出。請以此單號聯絡客服了解去向。", "Le personnel a retiré votre colis de la consigne. Contactez le support avec ce numéro pour savoir où il est.", "Das Personal hat Ihr Paket entnommen. Der Support sagt Ihnen mit dieser Nummer, wo es ist.", "El personal retiró su paquete. Llame a soporte con este número para saber dónde está."},
	otep.Stored:               {"Your goods are in storage until you ask for them.", "您的物品已入仓，可随时申请出仓。", "您的物品已入倉，可隨時申請出倉。", "Vos biens restent entreposés jusqu’à votre demande.", "Ihre Sachen lagern, bis Sie sie anfordern.", "Sus cosas quedan almacenadas hasta que las pida."},
	otep.ShipoutRequested:     {"Your goods are being made ready to leave storage.", "正在为您的物品办理出仓。", "正在為您的物品辦理出倉。", "Vos biens sont préparés pour la sortie d’entrepôt.", "Ihre Sachen werden für die Auslagerung vorbereitet.", "Sus cosas se preparan para salir del almacén."},
	otep.ShipoutReleased:      {"Your goods left storage and travel to you.", "您的物品已出仓，正在运往您处。", "您的物品已出倉，正運往您處。", "Vos biens ont quitté l’entrepôt et arrivent vers vous.", "Ihre Sachen haben das Lager verlassen und kommen zu Ihnen.", "Sus cosas salieron del almacén y van hacia usted."},
	otep.Loading:              {"The crew loads your goods and then drives off.", "工作人员装车完毕后即出发。", "工作人員裝車完畢後即出發。", "L’équipe charge vos biens, puis prend la route.", "Die Mannschaft verlädt Ihre Sachen und fährt dann los.", "El equipo carga sus cosas y después sale."},
	otep.Unloading:            {"The crew is with you and unloads your goods.", "工作人员已到达，正在卸货。", "工作人員已到達，正在卸貨。", "L’équipe est chez vous et décharge vos biens.", "Die Mannschaft ist bei Ihnen und entlädt.", "El equipo ya está con usted y descarga sus cosas."},
	otep.Preparing:            {"Your order is being prepared. A courier collects it next.", "订单正在准备，随后由骑手取餐。", "訂單正在準備，隨後由外送員取餐。", "Votre commande est en préparation. Un coursier viendra la prendre.", "Ihre Bestellung wird zubereitet. Danach holt sie ein Kurier.", "Su pedido se está preparando. Después lo recogerá un repartidor."},
	otep.Ready:                {"Your order is ready and waits for the courier.", "订单已备好，等待骑手取餐。", "訂單已備好，等待外送員取餐。", "Votre commande est prête et attend le coursier.", "Ihre Bestellung ist fertig und wartet auf den Kurier.", "Su pedido está listo y espera al repartidor."},
	otep.Intercepted:          {"The parcel was stopped on request. Ask the sender what happens to it.", "包裹已应要求拦截。请向寄件人了解后续处理。", "包裹已應要求攔截。請向寄件人了解後續處理。", "Le colis a été intercepté sur demande. Demandez la suite à l’expéditeur.", "Das Paket wurde auf Wunsch angehalten. Der Absender weiß, wie es weitergeht.", "El paquete se detuvo a petición. Pregunte al remitente qué pasará con él."},
	otep.CustomsHold:          {"Customs check your parcel. If papers are missing, the carrier contacts you.", "海关正在查验您的包裹。如需补充文件，承运商会与您联系。", "海關正在查驗您的包裹。如需補件，承運商會與您聯絡。", "La douane contrôle votre colis. S’il manque des papiers, le transporteur vous contactera.", "Der Zoll prüft Ihr Paket. Fehlen Unterlagen, meldet sich der Paketdienst bei Ihnen.", "La aduana revisa su paquete. Si faltan documentos, el transportista le avisará."},
}
