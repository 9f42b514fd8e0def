package locale

import (
	"strconv"
	"strings"
)

// hints say what to do about a finding of the tracking protocol's conformance
// rules, by rule. {1} and {2} stand for the values of the finding.
var hints = map[string]texts{
	"V01": {
		"Send one timeline as a JSON object, with otep_version, subject and events.",
		"请以 JSON 对象发送一条时间线，并包含 otep_version、subject 和 events。",
		"請以 JSON 物件傳送一條時間軸，並包含 otep_version、subject 與 events。",
		"Envoyez une chronologie sous forme d’objet JSON, avec otep_version, subject et events.",
		"Bitte einen Verlauf als JSON-Objekt senden, mit otep_version, subject und events.",
		"Envíe una cronología como objeto JSON, con otep_version, subject y events.",
	},
	"V02": {
		"Add otep_version as text, for example \"0.1\".",
		"请添加文本形式的 otep_version，例如 \"0.1\"。",
		"請加入文字形式的 otep_version，例如 \"0.1\"。",
		"Ajoutez otep_version sous forme de texte, par exemple \"0.1\".",
		"Bitte otep_version als Text ergänzen, zum Beispiel \"0.1\".",
		"Añada otep_version como texto, por ejemplo \"0.1\".",
	},
	"V03": {
		"Write the timeline in a 0.x version, for example \"0.1\", with two or three numbers.",
		"请使用 0.x 版本编写时间线，例如 \"0.1\"，由两到三个数字组成。",
		"請使用 0.x 版本撰寫時間軸，例如 \"0.1\"，由兩到三個數字組成。",
		"Rédigez la chronologie dans une version 0.x, par exemple \"0.1\", avec deux ou trois nombres.",
		"Bitte den Verlauf in einer Version 0.x schreiben, zum Beispiel \"0.1\", mit zwei oder drei Zahlen.",
		"Escriba la cronología en una versión 0.x, por ejemplo \"0.1\", con dos o tres números.",
	},
	"V04": {
		"Check that nothing you rely on is newer than version 0.1, because newer members are ignored.",
		"请确认您依赖的内容不晚于 0.1 版本，较新的成员会被忽略。",
		"請確認您依賴的內容不晚於 0.1 版本，較新的成員會被忽略。",
		"Vérifiez que vous ne dépendez de rien de plus récent que la version 0.1, car les membres plus récents sont ignorés.",
		"Bitte prüfen, ob Sie etwas brauchen, das neuer als Version 0.1 ist; neuere Angaben werden übergangen.",
		"Compruebe que no depende de nada posterior a la versión 0.1, pues los miembros más nuevos se ignoran.",
	},
	"V05": {
		"Name the profile, for example \"parcel\".",
		"请写明 profile，例如 \"parcel\"。",
		"請寫明 profile，例如 \"parcel\"。",
		"Indiquez le profil, par exemple \"parcel\".",
		"Bitte das Profil nennen, zum Beispiel \"parcel\".",
		"Indique el perfil, por ejemplo \"parcel\".",
	},
	"V06": {
		"Use a profile of lower-case letters, digits and underscores that starts with a letter, for example \"parcel\".",
		"profile 请使用小写字母、数字和下划线，并以字母开头，例如 \"parcel\"。",
		"profile 請使用小寫字母、數字與底線，並以字母開頭，例如 \"parcel\"。",
		"Utilisez un profil en minuscules, chiffres et tirets bas, commençant par une lettre, par exemple \"parcel\".",
		"Bitte ein Profil aus Kleinbuchstaben, Ziffern und Unterstrichen verwenden, das mit einem Buchstaben beginnt, zum Beispiel \"parcel\".",
		"Use un perfil de minúsculas, cifras y guiones bajos que empiece por una letra, por ejemplo \"parcel\".",
	},
	"V07": {
		"Use a registered profile (parcel, moving, food, storage, locker), or keep '{1}' and expect only universal codes to be understood.",
		"请使用已注册的 profile（parcel、moving、food、storage、locker）；若保留“{1}”，则只有通用代码能被理解。",
		"請使用已註冊的 profile（parcel、moving、food、storage、locker）；若保留「{1}」，則只有通用代碼能被理解。",
		"Prenez un profil enregistré (parcel, moving, food, storage, locker), ou gardez « {1} » en sachant que seuls les codes universels seront compris.",
		"Bitte ein eingetragenes Profil nehmen (parcel, moving, food, storage, locker), oder „{1}“ behalten und wissen, dass nur allgemeine Codes verstanden werden.",
		"Use un perfil registrado (parcel, moving, food, storage, locker), o conserve «{1}» sabiendo que solo se entenderán los códigos universales.",
	},
	"V08": {
		"Give the subject at least one of tracking_number, order_id, package_id, external_tracking_number, gs1_sscc or piece_id.",
		"请在 subject 中至少提供 tracking_number、order_id、package_id、external_tracking_number、gs1_sscc 或 piece_id 之一。",
		"請在 subject 中至少提供 tracking_number、order_id、package_id、external_tracking_number、gs1_sscc 或 piece_id 之一。",
		"Donnez au sujet au moins un de tracking_number, order_id, package_id, external_tracking_number, gs1_sscc ou piece_id.",
		"Bitte in subject mindestens eines angeben: tracking_number, order_id, package_id, external_tracking_number, gs1_sscc oder piece_id.",
		"Dé al sujeto al menos uno de tracking_number, order_id, package_id, external_tracking_number, gs1_sscc o piece_id.",
	},
	"V09": {
		"Correct {1}: numbers of parcels are text of 1 to 64 characters, ids are positive integers, and an SSCC is 18 digits with a right check digit.",
		"请更正 {1}：包裹单号为 1 至 64 个字符的文本，ID 为正整数，SSCC 为 18 位数字且校验位正确。",
		"請更正 {1}：包裹單號為 1 至 64 個字元的文字，ID 為正整數，SSCC 為 18 位數字且檢查碼正確。",
		"Corrigez {1} : les numéros de colis sont du texte de 1 à 64 caractères, les ids des entiers positifs, et un SSCC compte 18 chiffres avec la bonne clé.",
		"Bitte {1} berichtigen: Paketnummern sind Text von 1 bis 64 Zeichen, Ids positive ganze Zahlen, und eine SSCC hat 18 Ziffern mit richtiger Prüfziffer.",
		"Corrija {1}: los números de paquete son texto de 1 a 64 caracteres, los ids enteros positivos y un SSCC tiene 18 cifras con el dígito de control correcto.",
	},
	"V10": {
		"Send events as an array, empty when nothing has happened yet.",
		"请以数组发送 events，尚无事件时发送空数组。",
		"請以陣列傳送 events，尚無事件時傳送空陣列。",
		"Envoyez events sous forme de tableau, vide si rien ne s’est encore passé.",
		"Bitte events als Liste senden, leer, wenn noch nichts geschehen ist.",
		"Envíe events como lista, vacía si aún no ha ocurrido nada.",
	},
	"V11": {
		"Add when it happened, for example \"2026-06-10T11:30:00-04:00\".",
		"请添加发生时间，例如 \"2026-06-10T11:30:00-04:00\"。",
		"請加入發生時間，例如 \"2026-06-10T11:30:00-04:00\"。",
		"Ajoutez le moment des faits, par exemple \"2026-06-10T11:30:00-04:00\".",
		"Bitte angeben, wann es geschah, zum Beispiel \"2026-06-10T11:30:00-04:00\".",
		"Añada cuándo ocurrió, por ejemplo \"2026-06-10T11:30:00-04:00\".",
	},
	"V12": {
		"Write date, time and UTC offset, for example \"2026-06-10T11:30:00-04:00\" or \"2026-06-10T15:30:00Z\".",
		"请写明日期、时间和 UTC 偏移，例如 \"2026-06-10T11:30:00-04:00\" 或 \"2026-06-10T15:30:00Z\"。",
		"請寫明日期、時間與 UTC 時差，例如 \"2026-06-10T11:30:00-04:00\" 或 \"2026-06-10T15:30:00Z\"。",
		"Écrivez date, heure et décalage UTC, par exemple \"2026-06-10T11:30:00-04:00\" ou \"2026-06-10T15:30:00Z\".",
		"Bitte Datum, Uhrzeit und UTC-Abstand schreiben, zum Beispiel \"2026-06-10T11:30:00-04:00\" oder \"2026-06-10T15:30:00Z\".",
		"Escriba fecha, hora y desfase UTC, por ejemplo \"2026-06-10T11:30:00-04:00\" o \"2026-06-10T15:30:00Z\".",
	},
	"V13": {
		"Check the clock of the source, or set time_type to \"estimated\" or \"planned\" for what has not happened yet.",
		"请检查来源的时钟；若尚未发生，请将 time_type 设为 \"estimated\" 或 \"planned\"。",
		"請檢查來源的時鐘；若尚未發生，請將 time_type 設為 \"estimated\" 或 \"planned\"。",
		"Vérifiez l’horloge de la source, ou mettez time_type à \"estimated\" ou \"planned\" pour ce qui n’a pas encore eu lieu.",
		"Bitte die Uhr der Quelle prüfen, oder time_type auf \"estimated\" oder \"planned\" setzen, wenn es noch nicht geschehen ist.",
		"Revise el reloj de la fuente, o ponga time_type en \"estimated\" o \"planned\" para lo que aún no ha ocurrido.",
	},
	"V14": {
		"Write recorded_at with date, time and UTC offset, or leave it out.",
		"请为 recorded_at 写明日期、时间和 UTC 偏移，或将其省略。",
		"請為 recorded_at 寫明日期、時間與 UTC 時差，或將其省略。",
		"Écrivez recorded_at avec date, heure et décalage UTC, ou omettez-le.",
		"Bitte recorded_at mit Datum, Uhrzeit und UTC-Abstand schreiben oder weglassen.",
		"Escriba recorded_at con fecha, hora y desfase UTC, u omítalo.",
	},
	"V15": {
		"Check both times: an event cannot be recorded before it happened.",
		"请检查两个时间：事件不可能在发生之前被记录。",
		"請檢查兩個時間：事件不可能在發生之前被記錄。",
		"Vérifiez les deux heures : un événement ne peut être enregistré avant d’avoir eu lieu.",
		"Bitte beide Zeiten prüfen: Ein Ereignis wird nicht erfasst, bevor es geschieht.",
		"Revise ambas horas: un evento no puede registrarse antes de ocurrir.",
	},
	"V16": {
		"Give the event the timeline's otep_version, or leave it out of the event.",
		"请让事件使用时间线的 otep_version，或在事件中省略它。",
		"請讓事件使用時間軸的 otep_version，或在事件中省略它。",
		"Donnez à l’événement la version otep_version de la chronologie, ou omettez-la.",
		"Bitte dem Ereignis die otep_version des Verlaufs geben oder sie dort weglassen.",
		"Dé al evento la otep_version de la cronología, u omítala en el evento.",
	},
	"V17": {
		"Add a status_code as text, for example \"in_transit\".",
		"请添加文本形式的 status_code，例如 \"in_transit\"。",
		"請加入文字形式的 status_code，例如 \"in_transit\"。",
		"Ajoutez un status_code sous forme de texte, par exemple \"in_transit\".",
		"Bitte einen status_code als Text ergänzen, zum Beispiel \"in_transit\".",
		"Añada un status_code como texto, por ejemplo \"in_transit\".",
	},
	"V18": {
		"Use a code of the codebook, or mark one of your own with x- in front and give its phase.",
		"请使用代码表中的代码；自有代码请加前缀 x- 并写明 phase。",
		"請使用代碼表中的代碼；自有代碼請加前綴 x- 並寫明 phase。",
		"Prenez un code du répertoire, ou préfixez le vôtre par x- et indiquez sa phase.",
		"Bitte einen Code der Codeliste verwenden, oder einen eigenen mit x- beginnen und seine phase nennen.",
		"Use un código de la lista, o anteponga x- al suyo e indique su fase.",
	},
	"V19": {
		"Write '{2}' instead; it is read as that.",
		"请改写为“{2}”；系统已按此读取。",
		"請改寫為「{2}」；系統已按此讀取。",
		"Écrivez plutôt « {2} » : c’est ainsi qu’il est lu.",
		"Bitte stattdessen „{2}“ schreiben; so wird es gelesen.",
		"Escriba «{2}» en su lugar; así se lee.",
	},
	"V20": {
		"Use a universal code where one fits, because receivers may not know '{1}'.",
		"如有合适的通用代码请优先使用，接收方可能不认识“{1}”。",
		"如有合適的通用代碼請優先使用，接收方可能不認識「{1}」。",
		"Préférez un code universel s’il convient, car les destinataires peuvent ignorer « {1} ».",
		"Bitte wo möglich einen allgemeinen Code verwenden; Empfänger kennen „{1}“ vielleicht nicht.",
		"Use un código universal si encaja, pues los receptores quizá no conozcan «{1}».",
	},
	"V21": {
		"Write phase '{2}', or leave phase out: it follows from the status_code.",
		"请将 phase 写为“{2}”，或省略 phase：它由 status_code 决定。",
		"請將 phase 寫為「{2}」，或省略 phase：它由 status_code 決定。",
		"Écrivez la phase « {2} », ou omettez-la : elle découle du status_code.",
		"Bitte phase „{2}“ schreiben oder weglassen: Sie folgt aus dem status_code.",
		"Escriba la fase «{2}» u omítala: se deduce del status_code.",
	},
	"V22": {
		"Add the phase that this code belongs to, for example \"transit\".",
		"请添加该代码所属的 phase，例如 \"transit\"。",
		"請加入此代碼所屬的 phase，例如 \"transit\"。",
		"Ajoutez la phase de ce code, par exemple \"transit\".",
		"Bitte die phase ergänzen, zu der dieser Code gehört, zum Beispiel \"transit\".",
		"Añada la fase a la que pertenece este código, por ejemplo \"transit\".",
	},
	"V23": {
		"Add the source with its type, so that receivers know who said so.",
		"请添加 source 及其 type，以便接收方了解信息来源。",
		"請加入 source 及其 type，讓接收方了解資訊來源。",
		"Ajoutez la source avec son type, pour que l’on sache qui l’affirme.",
		"Bitte source mit type ergänzen, damit Empfänger wissen, wer es sagt.",
		"Añada la fuente con su tipo, para que se sepa quién lo dice.",
	},
	"V24": {
		"Set source.type to one of the eight types in the message.",
		"请将 source.type 设为消息中列出的八种类型之一。",
		"請將 source.type 設為訊息中列出的八種類型之一。",
		"Mettez dans source.type l’un des huit types du message.",
		"Bitte source.type auf einen der acht genannten Typen setzen.",
		"Ponga en source.type uno de los ocho tipos del mensaje.",
	},
	"V25": {
		"Write source.type '{2}' instead; it is read as that.",
		"请将 source.type 改写为“{2}”；系统已按此读取。",
		"請將 source.type 改寫為「{2}」；系統已按此讀取。",
		"Écrivez plutôt source.type « {2} » : c’est ainsi qu’il est lu.",
		"Bitte stattdessen source.type „{2}“ schreiben; so wird es gelesen.",
		"Escriba source.type «{2}» en su lugar; así se lee.",
	},
	"V26": {
		"Send location as an object, with latitude from -90 to 90 and longitude from -180 to 180 as numbers, both or neither.",
		"请以对象发送 location；latitude（-90 至 90）和 longitude（-180 至 180）须为数字，且同时提供或同时省略。",
		"請以物件傳送 location；latitude（-90 至 90）與 longitude（-180 至 180）須為數字，且同時提供或同時省略。",
		"Envoyez location sous forme d’objet, avec latitude de -90 à 90 et longitude de -180 à 180 en nombres, les deux ou aucune.",
		"Bitte location als Objekt senden, mit latitude von -90 bis 90 und longitude von -180 bis 180 als Zahlen, beide oder keine.",
		"Envíe location como objeto, con latitude de -90 a 90 y longitude de -180 a 180 como números, ambas o ninguna.",
	},
	"V27": {
		"Write the country as two letters, for example \"CA\".",
		"请用两个字母书写国家，例如 \"CA\"。",
		"請以兩個字母書寫國家，例如 \"CA\"。",
		"Écrivez le pays en deux lettres, par exemple \"CA\".",
		"Bitte das Land mit zwei Buchstaben schreiben, zum Beispiel \"CA\".",
		"Escriba el país con dos letras, por ejemplo \"CA\".",
	},
	"V28": {
		"Use a reason of the codebook, for example \"weather\", or mark one of your own with x- in front.",
		"请使用代码表中的原因，例如 \"weather\"；自有原因请加前缀 x-。",
		"請使用代碼表中的原因，例如 \"weather\"；自有原因請加前綴 x-。",
		"Prenez un motif du répertoire, par exemple \"weather\", ou préfixez le vôtre par x-.",
		"Bitte einen Grund der Codeliste verwenden, zum Beispiel \"weather\", oder einen eigenen mit x- beginnen.",
		"Use un motivo de la lista, por ejemplo \"weather\", o anteponga x- al suyo.",
	},
	"V29": {
		"Use a registered reason where one fits, because receivers may not know '{1}'.",
		"如有合适的已注册原因请优先使用，接收方可能不认识“{1}”。",
		"如有合適的已註冊原因請優先使用，接收方可能不認識「{1}」。",
		"Préférez un motif enregistré s’il convient, car les destinataires peuvent ignorer « {1} ».",
		"Bitte wo möglich einen eingetragenen Grund verwenden; Empfänger kennen „{1}“ vielleicht nicht.",
		"Use un motivo registrado si encaja, pues los receptores quizá no conozcan «{1}».",
	},
	"V30": {
		"Check whether the status_code or the incident_reason is the wrong one: reasons explain exceptions, returns and cancellations.",
		"请检查 status_code 或 incident_reason 是否有误：原因用于说明异常、退回和取消。",
		"請檢查 status_code 或 incident_reason 是否有誤：原因用於說明異常、退回與取消。",
		"Vérifiez lequel de status_code ou incident_reason est faux : les motifs expliquent incidents, retours et annulations.",
		"Bitte prüfen, ob status_code oder incident_reason falsch ist: Gründe erklären Störungen, Rücksendungen und Stornos.",
		"Compruebe si el error está en status_code o en incident_reason: los motivos explican incidencias, devoluciones y cancelaciones.",
	},
	"V31": {
		"Put the proof on the event that it proves, such as picked_up or delivered.",
		"请将凭证放在其所证明的事件上，例如 picked_up 或 delivered。",
		"請將憑證放在其所證明的事件上，例如 picked_up 或 delivered。",
		"Placez la preuve sur l’événement qu’elle atteste, comme picked_up ou delivered.",
		"Bitte den Nachweis an das Ereignis setzen, das er belegt, etwa picked_up oder delivered.",
		"Ponga la prueba en el evento que acredita, como picked_up o delivered.",
	},
	"V32": {
		"Give each item a type such as \"temperature\" and a value as a number.",
		"请为每一项提供类型（如 \"temperature\"）和数字形式的 value。",
		"請為每一項提供類型（如 \"temperature\"）與數字形式的 value。",
		"Donnez à chaque élément un type comme \"temperature\" et une valeur numérique.",
		"Bitte jedem Eintrag einen type wie \"temperature\" und einen value als Zahl geben.",
		"Dé a cada elemento un tipo como \"temperature\" y un valor numérico.",
	},
	"V33": {
		"Set time_type to \"actual\", \"estimated\" or \"planned\", or leave it out for actual.",
		"请将 time_type 设为 \"actual\"、\"estimated\" 或 \"planned\"；若为实际时间可省略。",
		"請將 time_type 設為 \"actual\"、\"estimated\" 或 \"planned\"；若為實際時間可省略。",
		"Mettez time_type à \"actual\", \"estimated\" ou \"planned\", ou omettez-le pour actual.",
		"Bitte time_type auf \"actual\", \"estimated\" oder \"planned\" setzen, oder für actual weglassen.",
		"Ponga time_type en \"actual\", \"estimated\" o \"planned\", u omítalo para actual.",
	},
	"V34": {
		"Give each event an id of its own, or leave event_id out and one is made.",
		"请为每个事件提供唯一的 event_id，或省略以自动生成。",
		"請為每個事件提供唯一的 event_id，或省略以自動產生。",
		"Donnez à chaque événement son propre identifiant, ou omettez event_id pour qu’il soit créé.",
		"Bitte jedem Ereignis eine eigene Id geben oder event_id weglassen, dann wird eine gebildet.",
		"Dé a cada evento un id propio, u omita event_id y se creará uno.",
	},
	"V35": {
		"Send each event as a JSON object with occurred_at and status_code.",
		"请以 JSON 对象发送每个事件，并包含 occurred_at 和 status_code。",
		"請以 JSON 物件傳送每個事件，並包含 occurred_at 與 status_code。",
		"Envoyez chaque événement sous forme d’objet JSON avec occurred_at et status_code.",
		"Bitte jedes Ereignis als JSON-Objekt mit occurred_at und status_code senden.",
		"Envíe cada evento como objeto JSON con occurred_at y status_code.",
	},
	"V40": {
		"Add the first event, or ignore this when nothing has happened yet.",
		"请添加首个事件；若尚未发生任何事件可忽略此提示。",
		"請加入首個事件；若尚未發生任何事件可忽略此提示。",
		"Ajoutez le premier événement, ou ignorez ceci si rien ne s’est encore passé.",
		"Bitte das erste Ereignis ergänzen, oder dies übergehen, wenn noch nichts geschehen ist.",
		"Añada el primer evento, o ignore esto si aún no ha ocurrido nada.",
	},
	"V41": {
		"List events oldest first; they are sorted before they are judged.",
		"请按从旧到新列出事件；系统在检查前会先排序。",
		"請依由舊到新列出事件；系統在檢查前會先排序。",
		"Listez les événements du plus ancien au plus récent ; ils sont triés avant d’être examinés.",
		"Bitte Ereignisse vom ältesten an auflisten; vor der Prüfung werden sie sortiert.",
		"Liste los eventos del más antiguo al más reciente; se ordenan antes de revisarlos.",
	},
	"V42": {
		"Check the times and codes of both events, or add the one that is missing between '{1}' and '{2}'.",
		"请检查两个事件的时间和代码，或补充“{1}”与“{2}”之间缺少的事件。",
		"請檢查兩個事件的時間與代碼，或補上「{1}」與「{2}」之間缺少的事件。",
		"Vérifiez les heures et codes des deux événements, ou ajoutez celui qui manque entre « {1} » et « {2} ».",
		"Bitte Zeiten und Codes beider Ereignisse prüfen, oder das zwischen „{1}“ und „{2}“ fehlende ergänzen.",
		"Revise las horas y códigos de ambos eventos, o añada el que falta entre «{1}» y «{2}».",
	},
	"V43": {
		"Check the time of '{1}', or leave it out: after '{2}' a timeline has ended.",
		"请检查“{1}”的时间或将其删除：“{2}”之后时间线已结束。",
		"請檢查「{1}」的時間或將其刪除：「{2}」之後時間軸已結束。",
		"Vérifiez l’heure de « {1} » ou retirez-le : après « {2} », la chronologie est close.",
		"Bitte die Zeit von „{1}“ prüfen oder das Ereignis weglassen: Nach „{2}“ ist der Verlauf zu Ende.",
		"Revise la hora de «{1}» o quítelo: tras «{2}» la cronología ha terminado.",
	},
	"V44": {
		"Set current_status to the code of the latest event, or leave it out.",
		"请将 current_status 设为最新事件的代码，或将其省略。",
		"請將 current_status 設為最新事件的代碼，或將其省略。",
		"Mettez dans current_status le code du dernier événement, ou omettez-le.",
		"Bitte current_status auf den Code des letzten Ereignisses setzen oder weglassen.",
		"Ponga en current_status el código del último evento, u omítalo.",
	},
	"V45": {
		"Set delivered to true exactly when the latest event is delivered, or leave it out.",
		"仅当最新事件为 delivered 时将 delivered 设为 true，或将其省略。",
		"僅當最新事件為 delivered 時將 delivered 設為 true，或將其省略。",
		"Mettez delivered à true uniquement si le dernier événement est delivered, ou omettez-le.",
		"Bitte delivered genau dann auf true setzen, wenn das letzte Ereignis delivered ist, oder weglassen.",
		"Ponga delivered en true solo cuando el último evento sea delivered, u omítalo.",
	},
}

// Hint says what to do about a conformance finding; args are the values of its
// message. It is empty for a rule that is not known.
func Hint(lang, rule string, args ...string) string {
	t, ok := hints[rule]
	if !ok {
		t, ok = ingestHints[rule]
	}
	if !ok {
		return ""
	}
	pairs := make([]string, 0, 2*len(args))
	for i, a := range args {
		pairs = append(pairs, "{"+strconv.Itoa(i+1)+"}", a)
	}
	return strings.NewReplacer(pairs...).Replace(t[index(lang)])
}

// ingestHints are for findings of ingest that are no rules of the protocol.
var ingestHints = map[string]texts{
	"I01": {
		"Nothing has to be done: events carry the name and type of the provider whose token sent them.",
		"无需处理：事件使用发送令牌所属服务商的名称和类型。",
		"無需處理：事件使用傳送權杖所屬服務商的名稱和類型。",
		"Rien à faire : les événements portent le nom et le type du prestataire dont le jeton les a envoyés.",
		"Nichts zu tun: Ereignisse tragen Namen und Art des Anbieters, dessen Token sie gesendet hat.",
		"No hay que hacer nada: los eventos llevan el nombre y el tipo del proveedor cuyo token los envió.",
	},
	"I02": {
		"Give the eventID of the event as you sent it; only its sender can take an event back.",
		"请提供您当初发送该事件时的 eventID；只有发送方才能撤回事件。",
		"請提供您當初傳送該事件時的 eventID；只有傳送方才能撤回事件。",
		"Indiquez l’eventID tel que vous l’avez envoyé ; seul l’expéditeur peut retirer un événement.",
		"Bitte die eventID so angeben, wie sie gesendet wurde; nur der Absender kann ein Ereignis zurücknehmen.",
		"Indique el eventID tal como lo envió; solo quien envió un evento puede retirarlo.",
	},
	"I03": {
		"Correct this part of the EPCIS event and send the event again; events that were taken count as duplicates.",
		"请更正 EPCIS 事件的这一部分并重新发送；已接收的事件按重复处理。",
		"請更正 EPCIS 事件的這一部分並重新傳送；已接收的事件視為重複。",
		"Corrigez cette partie de l’événement EPCIS et renvoyez-le ; ceux qui ont été pris comptent comme doublons.",
		"Bitte diesen Teil des EPCIS-Ereignisses berichtigen und erneut senden; schon übernommene zählen als Wiederholung.",
		"Corrija esta parte del evento EPCIS y envíelo otra vez; los ya aceptados cuentan como duplicados.",
	},
}
