package locale

// shortMessages are the words of short messages (SMS). They use the characters that such
// messages hold most of, where a language allows it.
var shortMessages = map[string]texts{
	"sms.parcel_waiting":   {"%s: your parcel is in the locker.", "%s：您的包裹已到快递柜。", "%s：您的包裹已到智慧櫃。", "%s : votre colis est à la consigne.", "%s: Ihr Paket liegt im Schrank.", "%s: su paquete espera en la taquilla."},
	"sms.parcel_code":      {"%s: the pickup code of your parcel.", "%s：您的包裹取件码。", "%s：您的包裹取件碼。", "%s : code de retrait de votre colis.", "%s: Abholcode Ihres Pakets.", "%s: clave de recogida de su paquete."},
	"sms.parcel_reminder":  {"%s: your parcel still waits in the locker.", "%s：您的包裹仍在快递柜中。", "%s：您的包裹仍在智慧櫃中。", "%s : votre colis attend encore à la consigne.", "%s: Ihr Paket wartet noch im Schrank.", "%s: su paquete sigue en la taquilla."},
	"sms.parcel_overdue":   {"%s: the time to collect is over, and your parcel still waits.", "%s：取件期限已过，您的包裹仍可领取。", "%s：取件期限已過，您的包裹仍可領取。", "%s : le délai est passé, votre colis attend encore.", "%s: Die Frist ist vorbei, Ihr Paket wartet noch.", "%s: el plazo ha terminado y su paquete sigue esperando."},
	"sms.delivery_code":    {"%s: courier code for a deposit.", "%s：快递员投放码。", "%s：快遞員投放碼。", "%s : code livreur pour déposer.", "%s: Zustellcode für eine Einlage.", "%s: clave de mensajero para dejar paquetes."},
	"sms.dropoff_code":     {"%s: your code to bring a parcel.", "%s：您的包裹投放码。", "%s：您的包裹投放碼。", "%s : code pour déposer votre colis.", "%s: Code zum Einlegen Ihres Pakets.", "%s: clave para depositar su paquete."},
	"sms.parcel_collected": {"%s: a courier has collected your parcel.", "%s：快递员已取走您的包裹。", "%s：快遞員已取走您的包裹。", "%s : un livreur a retiré votre colis.", "%s: Ein Kurier hat Ihr Paket abgeholt.", "%s: un mensajero ha recogido su paquete."},
	"sms.code":             {"Code %s.", "码 %s。", "碼 %s。", "Code %s.", "Code %s.", "Clave %s."},
	"sms.door":             {"Compartment %s.", "格口 %s。", "格口 %s。", "Casier %s.", "Fach %s.", "Compartimento %s."},
	"sms.until":            {"Collect by %s.", "请于 %s 前领取。", "請於 %s 前領取。", "Retirer avant %s.", "Abholen bis %s.", "Recoger antes de %s."},
	"sms.deliver_before":   {"Deposit by %s.", "请于 %s 前投放。", "請於 %s 前投放。", "Déposer avant %s.", "Einlegen bis %s.", "Depositar antes de %s."},
}
