package kiosk

// postTexts are the words of the page of a post, as texts are of the cabinet's.
var postTexts = map[string]map[string]string{
	"en": {
		"name": "English", "title": "Scanning post", "online": "Online", "offline": "Offline – scans are kept", "waiting": "Waiting for the cloud: {n}", "lost": "The program does not answer. Nothing is stored.",
		"store_ok": "Memory in order", "store_full": "Memory full: nothing is stored", "store_working": "Memory slow", "store_broken": "Memory cannot be written: nothing is stored",
		"ready": "Scan a label", "ok": "Stored", "repeated": "Scanned already", "ambiguous": "Not clear: scan another label of the parcel", "unreadable": "Cannot be read: scan again", "refused": "No label: scan the label of the parcel", "failed": "Not stored: scan again",
		"short_ok": "stored", "short_repeated": "repeated", "short_ambiguous": "not clear", "short_unreadable": "unreadable", "short_refused": "refused", "short_failed": "not stored",
		"camera": "Hold the label before the camera. Pictures are not kept.", "last": "Last scans", "counts": "Since {time}", "sound_on": "Sound is on", "sound_off": "Turn sound on", "languages": "Language", "step": "Work step", "step_problem": "The step was not changed: try again",
		"picked_up": "Picked up", "received": "Received", "arrival_scan": "Arrival scan", "in_transit": "In transit", "package_outbound": "Outbound", "out_for_delivery": "Out for delivery",
	},
	"fr": {
		"name": "Français", "title": "Poste de lecture", "online": "En ligne", "offline": "Hors ligne – les lectures sont gardées", "waiting": "En attente d’envoi : {n}", "lost": "Le programme ne répond pas. Rien n’est enregistré.",
		"store_ok": "Mémoire en ordre", "store_full": "Mémoire pleine : rien n’est enregistré", "store_working": "Mémoire lente", "store_broken": "Mémoire non inscriptible : rien n’est enregistré",
		"ready": "Scannez une étiquette", "ok": "Enregistré", "repeated": "Déjà scanné", "ambiguous": "Pas clair : scannez une autre étiquette du colis", "unreadable": "Illisible : scannez encore", "refused": "Pas une étiquette : scannez celle du colis", "failed": "Non enregistré : scannez encore",
		"short_ok": "enregistrés", "short_repeated": "répétés", "short_ambiguous": "pas clairs", "short_unreadable": "illisibles", "short_refused": "refusés", "short_failed": "non enregistrés",
		"camera": "Présentez l’étiquette à la caméra. Aucune image n’est gardée.", "last": "Dernières lectures", "counts": "Depuis {time}", "sound_on": "Le son est activé", "sound_off": "Activer le son", "languages": "Langue", "step": "Étape", "step_problem": "L’étape n’a pas été changée : réessayez",
		"picked_up": "Enlevé", "received": "Reçu", "arrival_scan": "Lecture à l’arrivée", "in_transit": "En transit", "package_outbound": "Départ", "out_for_delivery": "En livraison",
	},
	"de": {
		"name": "Deutsch", "title": "Scanplatz", "online": "Online", "offline": "Offline – Scans werden aufbewahrt", "waiting": "Warten auf die Cloud: {n}", "lost": "Das Programm antwortet nicht. Nichts wird gespeichert.",
		"store_ok": "Speicher in Ordnung", "store_full": "Speicher voll: nichts wird gespeichert", "store_working": "Speicher langsam", "store_broken": "Speicher nicht beschreibbar: nichts wird gespeichert",
		"ready": "Etikett scannen", "ok": "Gespeichert", "repeated": "Schon gescannt", "ambiguous": "Nicht eindeutig: anderes Etikett des Pakets scannen", "unreadable": "Nicht lesbar: noch einmal scannen", "refused": "Kein Etikett: Etikett des Pakets scannen", "failed": "Nicht gespeichert: noch einmal scannen",
		"short_ok": "gespeichert", "short_repeated": "wiederholt", "short_ambiguous": "nicht eindeutig", "short_unreadable": "nicht lesbar", "short_refused": "abgelehnt", "short_failed": "nicht gespeichert",
		"camera": "Etikett vor die Kamera halten. Bilder werden nicht aufbewahrt.", "last": "Letzte Scans", "counts": "Seit {time}", "sound_on": "Ton ist an", "sound_off": "Ton einschalten", "languages": "Sprache", "step": "Arbeitsschritt", "step_problem": "Der Schritt wurde nicht geändert: noch einmal versuchen",
		"picked_up": "Abgeholt", "received": "Eingegangen", "arrival_scan": "Ankunftsscan", "in_transit": "Unterwegs", "package_outbound": "Ausgang", "out_for_delivery": "In Zustellung",
	},
	"es": {
		"name": "Español", "title": "Puesto de lectura", "online": "En línea", "offline": "Sin conexión: las lecturas se guardan", "waiting": "En espera de envío: {n}", "lost": "El programa no responde. No se guarda nada.",
		"store_ok": "Memoria en orden", "store_full": "Memoria llena: no se guarda nada", "store_working": "Memoria lenta", "store_broken": "No se puede escribir la memoria: no se guarda nada",
		"ready": "Escanee una etiqueta", "ok": "Guardado", "repeated": "Ya escaneado", "ambiguous": "No está claro: escanee otra etiqueta del paquete", "unreadable": "Ilegible: escanee otra vez", "refused": "No es una etiqueta: escanee la del paquete", "failed": "No guardado: escanee otra vez",
		"short_ok": "guardados", "short_repeated": "repetidos", "short_ambiguous": "no claros", "short_unreadable": "ilegibles", "short_refused": "rechazados", "short_failed": "no guardados",
		"camera": "Acerque la etiqueta a la cámara. No se guardan imágenes.", "last": "Últimas lecturas", "counts": "Desde {time}", "sound_on": "El sonido está activado", "sound_off": "Activar el sonido", "languages": "Idioma", "step": "Paso de trabajo", "step_problem": "El paso no se cambió: inténtelo otra vez",
		"picked_up": "Recogido", "received": "Recibido", "arrival_scan": "Lectura de llegada", "in_transit": "En tránsito", "package_outbound": "Salida", "out_for_delivery": "En reparto",
	},
	"zh-Hans": {
		"name": "简体中文", "title": "扫描台", "online": "在线", "offline": "离线 – 扫描已保存", "waiting": "等待上传:{n}", "lost": "程序没有回应,未保存任何内容。",
		"store_ok": "存储正常", "store_full": "存储已满:不再保存", "store_working": "存储较慢", "store_broken": "存储无法写入:不再保存",
		"ready": "请扫描面单", "ok": "已保存", "repeated": "已扫描过", "ambiguous": "不明确:请扫描包裹的另一张面单", "unreadable": "无法识别:请重新扫描", "refused": "不是面单:请扫描包裹的面单", "failed": "未保存:请重新扫描",
		"short_ok": "已保存", "short_repeated": "重复", "short_ambiguous": "不明确", "short_unreadable": "无法识别", "short_refused": "已拒绝", "short_failed": "未保存",
		"camera": "请将面单对准摄像头。图像不会保存。", "last": "最近扫描", "counts": "自 {time} 起", "sound_on": "声音已开", "sound_off": "打开声音", "languages": "语言", "step": "工作步骤", "step_problem": "步骤未更改:请重试",
		"picked_up": "已揽收", "received": "已收货", "arrival_scan": "到达扫描", "in_transit": "运输中", "package_outbound": "出库", "out_for_delivery": "派送中",
	},
	"zh-Hant": {
		"name": "繁體中文", "title": "掃描台", "online": "連線中", "offline": "離線 – 掃描已保存", "waiting": "等待上傳:{n}", "lost": "程式沒有回應,未保存任何內容。",
		"store_ok": "儲存正常", "store_full": "儲存已滿:不再保存", "store_working": "儲存較慢", "store_broken": "儲存無法寫入:不再保存",
		"ready": "請掃描面單", "ok": "已保存", "repeated": "已掃描過", "ambiguous": "不明確:請掃描包裹的另一張面單", "unreadable": "無法辨識:請重新掃描", "refused": "不是面單:請掃描包裹的面單", "failed": "未保存:請重新掃描",
		"short_ok": "已保存", "short_repeated": "重複", "short_ambiguous": "不明確", "short_unreadable": "無法辨識", "short_refused": "已拒絕", "short_failed": "未保存",
		"camera": "請將面單對準鏡頭。影像不會保存。", "last": "最近掃描", "counts": "自 {time} 起", "sound_on": "聲音已開", "sound_off": "打開聲音", "languages": "語言", "step": "工作步驟", "step_problem": "步驟未變更:請重試",
		"picked_up": "已取件", "received": "已收貨", "arrival_scan": "到達掃描", "in_transit": "運送中", "package_outbound": "出庫", "out_for_delivery": "配送中",
	},
}
