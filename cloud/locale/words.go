package locale

import "maps"

// words are what the pages say. Enum values are "kind.value".
var words = func() map[string]texts {
	all := maps.Clone(pages)
	maps.Copy(all, guide)
	maps.Copy(all, hookWords)
	maps.Copy(all, docs)
	maps.Copy(all, tools)
	maps.Copy(all, approvals)
	maps.Copy(all, hooklog)
	maps.Copy(all, agents)
	maps.Copy(all, pushes)
	maps.Copy(all, chats)
	maps.Copy(all, scopes)
	maps.Copy(all, calls)
	maps.Copy(all, notes)
	maps.Copy(all, quickTexts)
	maps.Copy(all, thingWords)
	maps.Copy(all, setups)
	maps.Copy(all, persons)
	maps.Copy(all, mails)
	maps.Copy(all, shortMessages)
	maps.Copy(all, limitWords)
	maps.Copy(all, workWords)
	maps.Copy(all, actions)
	maps.Copy(all, stateSentences)
	maps.Copy(all, liveWords)
	maps.Copy(all, searchWords)
	maps.Copy(all, auditWords)
	maps.Copy(all, nouns)
	maps.Copy(all, verbs)
	maps.Copy(all, members)
	maps.Copy(all, choices)
	maps.Copy(all, workItems)
	maps.Copy(all, diagnosisWords)
	maps.Copy(all, reportWords)
	maps.Copy(all, kitWords)
	maps.Copy(all, bulkWords)
	return all
}()

// pages are the words of the recipient's page and of the console.
var pages = map[string]texts{
	"skip":          {"Skip to content", "跳到内容", "跳至內容", "Aller au contenu", "Zum Inhalt", "Ir al contenido"},
	"language":      {"Language", "语言", "語言", "Langue", "Sprache", "Idioma"},
	"reload":        {"Reload", "刷新", "重新整理", "Recharger", "Neu laden", "Recargar"},
	"home":          {"Track another parcel", "查询其他包裹", "查詢其他包裹", "Suivre un autre colis", "Anderes Paket verfolgen", "Seguir otro paquete"},
	"support":       {"Support", "客服", "客服", "Support", "Support", "Soporte"},
	"oops.title":    {"This page is not there", "页面不存在", "找不到此頁面", "Cette page n’existe pas", "Diese Seite gibt es nicht", "Esta página no existe"},
	"oops.body":     {"The address may be old or mistyped. Start again from the search.", "地址可能已过期或输入有误。请从查询页重新开始。", "網址可能已過期或輸入有誤。請從查詢頁重新開始。", "L’adresse est peut-être ancienne ou mal saisie. Repartez de la recherche.", "Die Adresse ist vielleicht alt oder vertippt. Bitte neu mit der Suche beginnen.", "La dirección puede ser antigua o estar mal escrita. Vuelva a empezar por la búsqueda."},
	"trouble.title": {"That did not work", "操作未成功", "操作未成功", "Cela n’a pas marché", "Das hat nicht geklappt", "No ha funcionado"},

	"app.local_delivery":     {"Local delivery", "同城配送", "同城配送", "Livraison locale", "Zustellung vor Ort", "Entrega local"},
	"app.update_required":    {"This version no longer works. Please update the app.", "此版本已停用，请更新应用。", "此版本已停用，請更新應用程式。", "Cette version ne fonctionne plus. Mettez l’application à jour.", "Diese Version geht nicht mehr. Bitte die App aktualisieren.", "Esta versión ya no funciona. Actualice la aplicación."},
	"app.update_recommended": {"A newer version is there. We recommend the update.", "已有新版本，建议更新。", "已有新版本，建議更新。", "Une version plus récente existe. Nous conseillons la mise à jour.", "Es gibt eine neuere Version. Wir empfehlen, sie zu laden.", "Hay una versión más nueva. Recomendamos actualizar."},
	"assignment_released":    {"The order is back with the business.", "订单已交还给企业。", "訂單已交還給企業。", "La commande est rendue à l’entreprise.", "Der Auftrag ist wieder beim Unternehmen.", "El pedido vuelve a la empresa."},

	"track.title":            {"Track a parcel", "查询包裹", "查詢包裹", "Suivre un colis", "Paket verfolgen", "Seguir un paquete"},
	"track.lead":             {"Enter the number from your message. No account needed.", "输入通知中的单号即可，无需账户。", "輸入通知中的單號即可，無須帳戶。", "Saisissez le numéro de votre message. Sans compte.", "Geben Sie die Nummer aus Ihrer Nachricht ein. Ohne Konto.", "Introduzca el número de su mensaje. Sin cuenta."},
	"track.number":           {"Tracking number", "运单号", "貨運單號", "Numéro de suivi", "Sendungsnummer", "Número de seguimiento"},
	"track.submit":           {"Track", "查询", "查詢", "Suivre", "Verfolgen", "Seguir"},
	"track.missing":          {"We know no parcel with this number", "没有找到此单号的包裹", "找不到此單號的包裹", "Aucun colis ne porte ce numéro", "Zu dieser Nummer ist kein Paket bekannt", "No conocemos ningún paquete con este número"},
	"track.check":            {"Check it for typing errors. A new parcel can take a few hours to appear.", "请检查是否输入有误。新包裹可能需要几小时才会显示。", "請檢查是否輸入有誤。新包裹可能需要幾小時才會顯示。", "Vérifiez la saisie. Un nouveau colis peut mettre quelques heures à apparaître.", "Bitte auf Tippfehler prüfen. Neue Pakete erscheinen manchmal erst nach Stunden.", "Revise que esté bien escrito. Un paquete nuevo puede tardar unas horas en aparecer."},
	"track.where":            {"Where it is", "当前位置", "目前位置", "Où il se trouve", "Wo es ist", "Dónde está"},
	"track.next":             {"What happens next", "接下来", "接下來", "La suite", "Wie es weitergeht", "Qué pasa ahora"},
	"track.apart":            {"Packages of this order", "此订单的包裹", "此訂單的包裹", "Colis de cette commande", "Pakete dieses Auftrags", "Paquetes de este pedido"},
	"track.history":          {"History", "历史记录", "歷史紀錄", "Historique", "Verlauf", "Historial"},
	"track.empty":            {"Nothing has been reported yet.", "暂无动态。", "尚無動態。", "Rien n’a encore été signalé.", "Noch wurde nichts gemeldet.", "Aún no hay novedades."},
	"track.confirmed":        {"Last confirmed", "最近确认", "最近確認", "Dernière confirmation", "Zuletzt bestätigt", "Última confirmación"},
	"track.stale":            {"This page could not be refreshed. What you see may be out of date.", "页面未能刷新，所示内容可能已过期。", "頁面未能更新，所示內容可能已過期。", "Cette page n’a pas pu être actualisée. Elle est peut-être dépassée.", "Diese Seite konnte nicht erneuert werden. Die Angaben können veraltet sein.", "No se pudo actualizar esta página. Lo que ve puede estar anticuado."},
	"track.shown":            {"Shown as of", "显示时间", "顯示時間", "Affiché à", "Angezeigt mit Stand", "Mostrado a las"},
	"track.offline":          {"The locker is not connected right now. News from it may be late; it still takes your code.", "快递柜当前未联网，动态可能延迟；取件码仍可使用。", "智慧櫃目前未連線，動態可能延遲；取件碼仍可使用。", "La consigne n’est pas connectée. Ses nouvelles peuvent tarder ; elle accepte toujours votre code.", "Der Schrank ist gerade nicht verbunden. Meldungen können sich verspäten; Ihren Code nimmt er trotzdem.", "La taquilla no está conectada. Sus avisos pueden tardar; su código sigue funcionando."},
	"track.quiet":            {"No news for a while. The carrier may not have reported yet.", "已有一段时间没有新动态，承运商可能尚未上报。", "已有一段時間沒有新動態，承運商可能尚未回報。", "Pas de nouvelles depuis un moment. Le transporteur n’a peut-être rien signalé.", "Seit einer Weile nichts Neues. Der Zusteller hat vielleicht noch nicht gemeldet.", "Hace tiempo que no hay novedades. Quizá el transportista aún no ha informado."},
	"return.title":           {"Return your parcel", "退回包裹", "退回包裹", "Retourner votre colis", "Paket zurückgeben", "Devolver su paquete"},
	"return.offer":           {"You can bring this parcel back to the locker %s. A courier collects it there.", "您可将此包裹退回快递柜 %s，快递员会在那里取件。", "您可將此包裹退回智慧櫃 %s，快遞員會在那裡取件。", "Vous pouvez rapporter ce colis à la consigne %s. Un livreur l’y retirera.", "Sie können dieses Paket zum Schrank %s zurückbringen. Ein Kurier holt es dort ab.", "Puede devolver este paquete en la taquilla %s. Un mensajero lo recogerá allí."},
	"return.ask":             {"Return this parcel", "退回此包裹", "退回此包裹", "Retourner ce colis", "Dieses Paket zurückgeben", "Devolver este paquete"},
	"return.bring":           {"Type this code at the locker %s, put the parcel in and close the door. A courier collects it there.", "请在快递柜 %s 输入此码，放入包裹并关门。快递员会在那里取件。", "請在智慧櫃 %s 輸入此碼，放入包裹並關門。快遞員會在那裡取件。", "Saisissez ce code à la consigne %s, déposez le colis et fermez la porte. Un livreur l’y retirera.", "Diesen Code am Schrank %s eintippen, das Paket hineinlegen und die Tür schließen. Ein Kurier holt es dort ab.", "Escriba este código en la taquilla %s, coloque el paquete y cierre la puerta. Un mensajero lo recogerá allí."},
	"return.code":            {"Drop-off code", "投放码", "投放碼", "Code de dépôt", "Einlegecode", "Código de depósito"},
	"return.until":           {"Until", "截止", "截止", "Jusqu’au", "Bis", "Hasta"},
	"return.waits":           {"Your parcel lies in the locker. A courier collects it.", "您的包裹已在快递柜中，快递员会来取件。", "您的包裹已在智慧櫃中，快遞員會來取件。", "Votre colis est dans la consigne. Un livreur le retirera.", "Ihr Paket liegt im Schrank. Ein Kurier holt es ab.", "Su paquete está en la taquilla. Un mensajero lo recogerá."},
	"return.collected":       {"A courier has collected your parcel.", "快递员已取走您的包裹。", "快遞員已取走您的包裹。", "Un livreur a retiré votre colis.", "Ein Kurier hat Ihr Paket abgeholt.", "Un mensajero ha recogido su paquete."},
	"return.over":            {"The drop-off code has run out.", "投放码已过期。", "投放碼已過期。", "Le code de dépôt a expiré.", "Der Einlegecode ist abgelaufen.", "El código de depósito ha caducado."},
	"dropoff.title":          {"Bring your parcel", "投放您的包裹", "投放您的包裹", "Déposer votre colis", "Paket abgeben", "Entregar su paquete"},
	"dropoff.missing":        {"This link does not work", "此链接无效", "此連結無效", "Ce lien ne fonctionne pas", "Dieser Link gilt nicht", "Este enlace no funciona"},
	"dropoff.again":          {"Open the newest link from your message again. If it still does not work, ask the sender of the message for another.", "请重新打开通知中最新的链接。如仍无效，请向通知的发送方索取新链接。", "請重新開啟通知中最新的連結。如仍無效，請向通知的傳送方索取新連結。", "Ouvrez à nouveau le lien le plus récent de votre message. S’il ne fonctionne toujours pas, demandez-en un autre à l’expéditeur du message.", "Bitte den neuesten Link aus Ihrer Nachricht noch einmal öffnen. Gilt er weiterhin nicht, beim Absender der Nachricht einen anderen erbitten.", "Abra de nuevo el enlace más reciente de su mensaje. Si sigue sin funcionar, pida otro a quien le envió el mensaje."},
	"dropoff.where":          {"Where to bring it", "投放地点", "投放地點", "Où le déposer", "Wohin", "Dónde entregarlo"},
	"dropoff.status":         {"Status", "状态", "狀態", "État", "Stand", "Estado"},
	"dropoff.hours":          {"Opening hours", "开放时间", "開放時間", "Heures d’ouverture", "Öffnungszeiten", "Horario"},
	"dropoff.always":         {"Open at all times", "全天开放", "全天開放", "Toujours ouvert", "Durchgehend geöffnet", "Abierto siempre"},
	"dropoff.closed":         {"Closed", "不开放", "不開放", "Fermé", "Geschlossen", "Cerrado"},
	"dropoff.guide":          {"How to find it", "如何找到", "如何找到", "Comment la trouver", "So finden Sie hin", "Cómo encontrarla"},
	"dropoff.by":             {"Bring it by", "投放截止", "投放截止", "À déposer avant", "Einlegen bis", "Entregar antes de"},
	"dropoff.cancelled":      {"This delivery was cancelled. The code does not work any more.", "此投递已取消，投放码已失效。", "此投遞已取消，投放碼已失效。", "Cet envoi a été annulé. Le code ne fonctionne plus.", "Diese Sendung wurde storniert. Der Code gilt nicht mehr.", "Este envío se canceló. El código ya no funciona."},
	"dropoff.late":           {"The time to bring this parcel is over. The code does not work any more.", "投放期限已过，投放码已失效。", "投放期限已過，投放碼已失效。", "Le délai pour déposer ce colis est passé. Le code ne fonctionne plus.", "Die Zeit zum Abgeben ist vorbei. Der Code gilt nicht mehr.", "El plazo para entregar este paquete ha terminado. El código ya no funciona."},
	"dropoff.failed":         {"This parcel could not be handed in. Ask the sender of the message what to do.", "此包裹未能投放。请向通知的发送方咨询。", "此包裹未能投放。請向通知的傳送方詢問。", "Ce colis n’a pas pu être déposé. Demandez à l’expéditeur du message que faire.", "Dieses Paket konnte nicht abgegeben werden. Bitte beim Absender der Nachricht nachfragen.", "Este paquete no se pudo entregar. Pregunte a quien le envió el mensaje."},
	"dropoff.cancel":         {"Cancel this delivery", "取消此投递", "取消此投遞", "Annuler cet envoi", "Sendung stornieren", "Cancelar este envío"},
	"dropoff.sure":           {"The code stops working at once, and this cannot be undone.", "投放码将立即失效，且无法撤销。", "投放碼將立即失效，且無法復原。", "Le code cesse aussitôt de fonctionner, sans retour possible.", "Der Code gilt sofort nicht mehr. Das lässt sich nicht rückgängig machen.", "El código deja de funcionar enseguida y no se puede deshacer."},
	"dropoff.confirm":        {"Yes, cancel it", "是，取消", "是，取消", "Oui, annuler", "Ja, stornieren", "Sí, cancelar"},
	"dropoff.changed":        {"It cannot be cancelled any more. This page shows how far it has come.", "已无法取消。此页面显示当前进展。", "已無法取消。此頁面顯示目前進展。", "Il ne peut plus être annulé. Cette page montre où il en est.", "Sie lässt sich nicht mehr stornieren. Diese Seite zeigt den Stand.", "Ya no se puede cancelar. Esta página muestra su estado."},
	"dropoff.busy":           {"The locker does not answer while its door is open. Close the door, or try again in a minute.", "柜门打开且快递柜未应答。请关好柜门，或一分钟后重试。", "櫃門開啟且智慧櫃未回應。請關好櫃門，或一分鐘後重試。", "La consigne ne répond pas alors que sa porte est ouverte. Fermez la porte, ou réessayez dans une minute.", "Der Schrank antwortet nicht, während seine Tür offen ist. Bitte die Tür schließen oder es in einer Minute erneut versuchen.", "La taquilla no responde con la puerta abierta. Cierre la puerta o inténtelo de nuevo en un minuto."},
	"dropoff.often":          {"Too many requests from this network. Wait a minute, then load the page again.", "此网络请求过于频繁。请一分钟后重新加载页面。", "此網路請求過於頻繁。請一分鐘後重新載入頁面。", "Trop de demandes depuis ce réseau. Attendez une minute, puis rechargez la page.", "Zu viele Anfragen aus diesem Netz. Bitte eine Minute warten und die Seite neu laden.", "Demasiadas solicitudes desde esta red. Espere un minuto y vuelva a cargar la página."},
	"handover.title":         {"Another person picks it up", "由他人代取", "由他人代領", "Une autre personne le retire", "Eine andere Person holt es ab", "Lo recoge otra persona"},
	"handover.offer":         {"You can let another person pick it up. That person gets a code, and yours stops working.", "您可以让他人代取。对方会得到一个取件码，您的取件码随即失效。", "您可以讓他人代領。對方會得到一個取件碼，您的取件碼隨即失效。", "Une autre personne peut le retirer. Elle reçoit un code, et le vôtre ne fonctionne plus.", "Eine andere Person kann es abholen. Sie bekommt einen Code, und Ihrer gilt dann nicht mehr.", "Otra persona puede recogerlo. Recibe un código, y el suyo deja de funcionar."},
	"handover.name":          {"Name of that person", "代取人姓名", "代領人姓名", "Nom de cette personne", "Name dieser Person", "Nombre de esa persona"},
	"handover.phone":         {"Telephone number of that person (optional)", "该人的电话号码（选填）", "該人的電話號碼（選填）", "Numéro de téléphone de cette personne (facultatif)", "Telefonnummer dieser Person (freiwillig)", "Teléfono de esa persona (opcional)"},
	"handover.ask":           {"Let this person pick it up", "让此人代取", "讓此人代領", "Confier le retrait", "Diese Person holt ab", "Ceder la recogida"},
	"handover.code":          {"Give %s this code. It is shown only now.", "请把此取件码告诉 %s。它只显示这一次。", "請把此取件碼告訴 %s。它只顯示這一次。", "Donnez ce code à %s. Il n’est affiché que maintenant.", "Geben Sie %s diesen Code. Er wird nur jetzt gezeigt.", "Dé este código a %s. Solo se muestra ahora."},
	"handover.wrong":         {"Give the name of the person, of at most 120 letters, and a telephone number such as +14165550123, or none.", "请填写对方姓名（最多 120 字），电话号码格式如 +14165550123，也可不填。", "請填寫對方姓名（最多 120 字），電話號碼格式如 +14165550123，也可不填。", "Indiquez le nom de la personne, de 120 lettres au plus, et un numéro de téléphone comme +14165550123, ou aucun.", "Bitte den Namen der Person angeben, höchstens 120 Zeichen, und eine Telefonnummer wie +14165550123 oder keine.", "Indique el nombre de la persona, de 120 letras como máximo, y un teléfono como +14165550123, o ninguno."},
	"handover.back":          {"Pick it up yourself", "改为自己取件", "改為自行領取", "Le retirer vous-même", "Doch selbst abholen", "Recogerlo usted"},
	"handover.renewed":       {"If you pick it up yourself after all, you get a new code, and that of the other person stops working.", "若改为自己取件，您会得到新的取件码，对方的取件码随即失效。", "若改為自行領取，您會得到新的取件碼，對方的取件碼隨即失效。", "Si vous le retirez finalement vous-même, vous recevez un nouveau code et celui de l’autre personne ne fonctionne plus.", "Holen Sie es doch selbst ab, bekommen Sie einen neuen Code, und der der anderen Person gilt nicht mehr.", "Si al final lo recoge usted, recibe un código nuevo y el de la otra persona deja de funcionar."},
	"collect.title":          {"Collect your parcel", "取走您的包裹", "領取您的包裹", "Retirer votre colis", "Paket abholen", "Recoger su paquete"},
	"collect.code":           {"Pickup code", "取件码", "取件碼", "Code de retrait", "Abholcode", "Código de recogida"},
	"collect.scan":           {"Hold it before the locker’s scanner", "在快递柜扫描器前出示", "在智慧櫃掃描器前出示", "À présenter au lecteur de la consigne", "Vor den Scanner der Paketstation halten", "Muéstrelo al lector de la taquilla"},
	"collect.here":           {"Do you stand before the locker?", "您在快递柜前吗？", "您在智慧櫃前嗎？", "Vous êtes devant la consigne ?", "Stehen Sie vor der Paketstation?", "¿Está ante la taquilla?"},
	"collect.open":           {"Open the door", "开门", "開門", "Ouvrir la porte", "Tür öffnen", "Abrir la puerta"},
	"collect.onsite":         {"Or type the on-site code on its screen", "或输入柜屏上的现场码", "或輸入櫃螢幕上的現場碼", "Ou saisissez le code sur place affiché à l’écran", "Oder den Vor-Ort-Code vom Bildschirm eintippen", "O escriba el código in situ de su pantalla"},
	"collect.nowhere":        {"Your browser gives no position. Type the code on the locker’s screen, or the pickup code at its keypad.", "浏览器未提供位置。请输入柜屏上的现场码，或在键盘输入取件码。", "瀏覽器未提供位置。請輸入櫃螢幕上的現場碼，或在鍵盤輸入取件碼。", "Votre navigateur ne donne pas de position. Saisissez le code affiché par la consigne, ou le code de retrait à son clavier.", "Der Browser gibt keine Position. Bitte den Code vom Bildschirm eintippen oder den Abholcode an der Paketstation.", "Su navegador no da la posición. Escriba el código de la pantalla, o el código de recogida en el teclado de la taquilla."},
	"collect.opened":         {"The door opens: %s. Take your parcel out and close it again.", "柜门正在打开：%s。取出包裹后请关好柜门。", "櫃門正在開啟：%s。取出包裹後請關好櫃門。", "La porte s’ouvre : %s. Prenez votre colis puis refermez-la.", "Die Tür öffnet sich: %s. Paket herausnehmen und Tür wieder schließen.", "La puerta se abre: %s. Saque su paquete y ciérrela."},
	"collect.pending":        {"The locker has not answered yet. Look at the door before you try again.", "快递柜尚未应答。重试前请先查看柜门。", "智慧櫃尚未回應。重試前請先查看櫃門。", "La consigne n’a pas encore répondu. Regardez la porte avant de réessayer.", "Die Paketstation hat noch nicht geantwortet. Bitte vor einem neuen Versuch auf die Tür schauen.", "La taquilla aún no ha respondido. Mire la puerta antes de reintentar."},
	"collect.unread":         {"Your code cannot be shown just now: this network has asked too often. Load the page again in a minute.", "暂时无法显示取件码：此网络请求过于频繁。请一分钟后重新加载页面。", "暫時無法顯示取件碼：此網路請求過於頻繁。請一分鐘後重新載入頁面。", "Votre code ne peut pas être affiché pour l’instant : trop de demandes depuis ce réseau. Rechargez la page dans une minute.", "Der Code lässt sich gerade nicht zeigen: zu viele Anfragen aus diesem Netz. Bitte die Seite in einer Minute neu laden.", "Ahora no se puede mostrar su código: hay demasiadas solicitudes desde esta red. Vuelva a cargar la página en un minuto."},
	"collect.often":          {"Too many tries. Wait a minute, then press the button again, or use your pickup code at the keypad.", "尝试次数过多。请等一分钟后再按，或在键盘输入取件码。", "嘗試次數過多。請等一分鐘後再按，或在鍵盤輸入取件碼。", "Trop d’essais. Attendez une minute avant de réessayer, ou saisissez votre code de retrait au clavier.", "Zu viele Versuche. Bitte eine Minute warten und erneut drücken, oder den Abholcode an der Paketstation eintippen.", "Demasiados intentos. Espere un minuto y vuelva a pulsar, o use su código de recogida en el teclado."},
	"collect.offline":        {"The locker is not connected, so it cannot be opened from here. Type your pickup code at its keypad; it works without a network.", "快递柜未联网，无法从此处开柜。请在键盘输入取件码，无需网络。", "智慧櫃未連線，無法從此處開櫃。請在鍵盤輸入取件碼，無需網路。", "La consigne n’est pas connectée et ne s’ouvre pas d’ici. Saisissez votre code de retrait à son clavier ; il marche sans réseau.", "Die Paketstation ist nicht verbunden und lässt sich von hier nicht öffnen. Bitte den Abholcode dort eintippen, er gilt auch ohne Netz.", "La taquilla no está conectada y no se puede abrir desde aquí. Escriba su código de recogida en su teclado; funciona sin red."},
	"collect.gone":           {"This parcel cannot be opened from here now. It may have been collected, or its door may be in use. Load the page again to see where it is.", "目前无法从此处打开该包裹。它可能已被取走，或柜门正在使用。请重新加载页面查看。", "目前無法從此處打開該包裹。它可能已被領取，或櫃門正在使用。請重新載入頁面查看。", "Ce colis ne peut pas être ouvert d’ici maintenant. Il a peut-être été retiré, ou sa porte est utilisée. Rechargez la page pour voir où il est.", "Dieses Paket lässt sich jetzt nicht von hier öffnen. Vielleicht wurde es abgeholt, oder seine Tür ist in Gebrauch. Bitte die Seite neu laden.", "Ahora no se puede abrir este paquete desde aquí. Quizá ya se recogió, o su puerta está en uso. Vuelva a cargar la página para ver dónde está."},
	"collect.handed":         {"%s collects it in your place: your own code does not work.", "由 %s 代您领取：您自己的取件码已失效。", "由 %s 代您領取：您自己的取件碼已失效。", "%s le retire à votre place : votre propre code ne fonctionne plus.", "%s holt es an Ihrer Stelle ab: Ihr eigener Code gilt nicht.", "%s lo recoge en su lugar: su propio código no funciona."},
	"collect.keypad":         {"The locker cannot be opened from here right now. Its keypad and scanner take your code, also without a network.", "目前无法从此处开柜。键盘和扫描器仍可使用您的取件码，无需网络。", "目前無法從此處開櫃。鍵盤和掃描器仍可使用您的取件碼，無需網路。", "La consigne ne peut pas être ouverte d’ici pour l’instant. Son clavier et son lecteur acceptent votre code, même sans réseau.", "Die Paketstation lässt sich gerade nicht von hier öffnen. Tastatur und Scanner nehmen den Code, auch ohne Netz.", "Ahora no se puede abrir la taquilla desde aquí. Su teclado y su lector aceptan su código, también sin red."},
	"track.proof":            {"Is it for you?", "这是您的包裹吗？", "這是您的包裹嗎？", "Est-il pour vous ?", "Ist es für Sie?", "¿Es para usted?"},
	"track.codelink":         {"The pickup code is in your message. The link in it shows the code on this page, too, and opens the door.", "取件码在通知中。点击其中的链接，也可在此页面查看取件码并开柜。", "取件碼在通知中。點擊其中的連結，也可在此頁面查看取件碼並開櫃。", "Le code de retrait est dans votre message. Son lien affiche aussi le code sur cette page et ouvre la porte.", "Der Abholcode steht in Ihrer Nachricht. Der Link darin zeigt ihn auch auf dieser Seite und öffnet die Tür.", "El código de recogida está en su mensaje. Su enlace muestra el código también en esta página y abre la puerta."},
	"track.codelater":        {"Once the parcel is in the locker, you get a message with your pickup code. The link in it shows the code on this page, too.", "包裹入柜后，您将收到含取件码的通知。点击其中的链接，也可在此页面查看取件码。", "包裹入櫃後，您將收到含取件碼的通知。點擊其中的連結，也可在此頁面查看取件碼。", "Dès que le colis est en consigne, vous recevez un message avec votre code de retrait. Son lien affiche aussi le code sur cette page.", "Sobald das Paket im Schrank liegt, erhalten Sie eine Nachricht mit Ihrem Abholcode. Der Link darin zeigt ihn auch auf dieser Seite.", "Cuando el paquete esté en la taquilla, recibirá un mensaje con su código de recogida. Su enlace muestra el código también en esta página."},
	"track.digitsdoor":       {"The last four digits of the recipient’s phone number show the compartment, not the code.", "输入收件人电话号码的后四位可查看格口，但不显示取件码。", "輸入收件人電話號碼的末四碼可查看格位，但不顯示取件碼。", "Les quatre derniers chiffres du téléphone du destinataire affichent le casier, mais pas le code.", "Die letzten vier Ziffern der Telefonnummer des Empfängers zeigen das Fach, nicht den Code.", "Las cuatro últimas cifras del teléfono del destinatario muestran el compartimento, no el código."},
	"track.digitsdoorwrite":  {"The last four digits of the recipient’s phone number show the compartment, not the code, and let you write to us.", "输入收件人电话号码的后四位可查看格口并与我们联系，但不显示取件码。", "輸入收件人電話號碼的末四碼可查看格位並與我們聯絡，但不顯示取件碼。", "Les quatre derniers chiffres du téléphone du destinataire affichent le casier, mais pas le code, et permettent de nous écrire.", "Mit den letzten vier Ziffern der Telefonnummer des Empfängers sehen Sie das Fach, nicht den Code, und können uns schreiben.", "Con las cuatro últimas cifras del teléfono del destinatario ve el compartimento, no el código, y puede escribirnos."},
	"track.digitswrite":      {"Open the link from your message, or give the last four digits of the recipient’s phone number, to write to us.", "打开通知中的链接，或输入收件人电话号码的后四位，即可与我们联系。", "開啟通知中的連結，或輸入收件人電話號碼的末四碼，即可與我們聯絡。", "Ouvrez le lien de votre message, ou donnez les quatre derniers chiffres du téléphone du destinataire, pour nous écrire.", "Öffnen Sie den Link aus Ihrer Nachricht oder geben Sie die letzten vier Ziffern der Telefonnummer des Empfängers an, um uns zu schreiben.", "Abra el enlace de su mensaje, o indique las cuatro últimas cifras del teléfono del destinatario, para escribirnos."},
	"track.digitsmore":       {"Open the link from your message, or give the last four digits of the recipient’s phone number, to see where the parcel has been.", "打开通知中的链接，或输入收件人电话号码的后四位，即可查看包裹的运输记录。", "開啟通知中的連結，或輸入收件人電話號碼的末四碼，即可查看包裹的運送紀錄。", "Ouvrez le lien de votre message, ou donnez les quatre derniers chiffres du téléphone du destinataire, pour voir le parcours du colis.", "Öffnen Sie den Link aus Ihrer Nachricht oder geben Sie die letzten vier Ziffern der Telefonnummer des Empfängers an, um den Weg des Pakets zu sehen.", "Abra el enlace de su mensaje, o indique las cuatro últimas cifras del teléfono del destinatario, para ver por dónde ha pasado el paquete."},
	"track.code":             {"Your pickup code", "您的取件码", "您的取件碼", "Votre code de retrait", "Ihr Abholcode", "Su código de recogida"},
	"plan.partner":           {"A delivery partner has the order", "配送合作方已接单", "配送合作方已接單", "Un partenaire de livraison a la commande", "Ein Zustellpartner hat den Auftrag", "Un socio de reparto tiene el pedido"},
	"plan.partner.next":      {"A delivery partner has taken over the order and plans the day next.", "配送合作方已接手，接下来将安排日期。", "配送合作方已接手，接下來將安排日期。", "Un partenaire de livraison a repris la commande et va fixer le jour.", "Ein Zustellpartner hat den Auftrag übernommen und plant als Nächstes den Tag.", "Un socio de reparto se ha hecho cargo del pedido y fijará el día."},
	"plan.driver":            {"A driver has the order", "司机已接单", "司機已接單", "Un chauffeur a la commande", "Ein Fahrer hat den Auftrag", "Un conductor tiene el pedido"},
	"plan.delivery":          {"Delivery planned", "已安排派送", "已安排配送", "Livraison planifiée", "Zustellung geplant", "Entrega planificada"},
	"plan.delivery.open":     {"A driver brings your parcel. The day is not set yet.", "司机将派送您的包裹，日期尚未确定。", "司機將配送您的包裹，日期尚未確定。", "Un chauffeur apportera votre colis. Le jour n’est pas encore fixé.", "Ein Fahrer bringt Ihr Paket. Der Tag steht noch nicht fest.", "Un conductor le llevará el paquete. El día aún no está fijado."},
	"plan.delivery.day":      {"A driver brings your parcel on %s.", "司机将于%s派送您的包裹。", "司機將於%s配送您的包裹。", "Un chauffeur apportera votre colis le %s.", "Ein Fahrer bringt Ihr Paket am %s.", "Un conductor le llevará el paquete el %s."},
	"plan.delivery.window":   {"A driver brings your parcel on %s, between %s and %s.", "司机将于%s %s至%s派送您的包裹。", "司機將於%s %s至%s配送您的包裹。", "Un chauffeur apportera votre colis le %s, entre %s et %s.", "Ein Fahrer bringt Ihr Paket am %s zwischen %s und %s Uhr.", "Un conductor le llevará el paquete el %s, entre las %s y las %s."},
	"plan.pickup":            {"Pickup planned", "已安排揽收", "已安排取件", "Enlèvement planifié", "Abholung geplant", "Recogida planificada"},
	"plan.pickup.open":       {"A driver collects the parcel from the sender. The day is not set yet.", "司机将到寄件处揽收，日期尚未确定。", "司機將到寄件處取件，日期尚未確定。", "Un chauffeur ira chercher le colis chez l’expéditeur. Le jour n’est pas encore fixé.", "Ein Fahrer holt das Paket beim Absender ab. Der Tag steht noch nicht fest.", "Un conductor recogerá el paquete del remitente. El día aún no está fijado."},
	"plan.pickup.day":        {"A driver collects the parcel from the sender on %s.", "司机将于%s到寄件处揽收。", "司機將於%s到寄件處取件。", "Un chauffeur ira chercher le colis chez l’expéditeur le %s.", "Ein Fahrer holt das Paket am %s beim Absender ab.", "Un conductor recogerá el paquete del remitente el %s."},
	"plan.pickup.window":     {"A driver collects the parcel from the sender on %s, between %s and %s.", "司机将于%s %s至%s到寄件处揽收。", "司機將於%s %s至%s到寄件處取件。", "Un chauffeur ira chercher le colis chez l’expéditeur le %s, entre %s et %s.", "Ein Fahrer holt das Paket am %s zwischen %s und %s Uhr beim Absender ab.", "Un conductor recogerá el paquete del remitente el %s, entre las %s y las %s."},
	"track.digits":           {"Last four digits", "后四位", "末四碼", "Quatre derniers chiffres", "Letzte vier Ziffern", "Cuatro últimas cifras"},
	"track.prove":            {"Show more", "显示更多", "顯示更多", "En voir plus", "Mehr zeigen", "Ver más"},
	"track.wrong":            {"These digits do not match this parcel.", "这些数字与此包裹不符。", "這些數字與此包裹不符。", "Ces chiffres ne correspondent pas à ce colis.", "Diese Ziffern passen nicht zu diesem Paket.", "Estas cifras no corresponden a este paquete."},
	"track.locked":           {"Too many wrong digits. Try again in %s minutes, or open the link from your message.", "错误次数过多。请在 %s 分钟后重试，或打开通知中的链接。", "錯誤次數過多。請在 %s 分鐘後重試，或開啟通知中的連結。", "Trop de chiffres erronés. Réessayez dans %s minutes, ou ouvrez le lien de votre message.", "Zu viele falsche Ziffern. Versuchen Sie es in %s Minuten noch einmal oder öffnen Sie den Link aus Ihrer Nachricht.", "Demasiadas cifras erróneas. Inténtelo de nuevo en %s minutos o abra el enlace de su mensaje."},
	"track.needproof":        {"Only the recipient can write here. Open the link from your message, or give the last four digits.", "只有收件人可以在此留言。请打开通知中的链接，或输入后四位。", "只有收件人可以在此留言。請開啟通知中的連結，或輸入末四碼。", "Seul le destinataire peut écrire ici. Ouvrez le lien de votre message, ou donnez les quatre derniers chiffres.", "Nur der Empfänger kann hier schreiben. Öffnen Sie den Link aus Ihrer Nachricht oder geben Sie die letzten vier Ziffern an.", "Solo el destinatario puede escribir aquí. Abra el enlace de su mensaje o indique las cuatro últimas cifras."},
	"exception.proof_locked": {"Digits of a recipient guessed", "有人试猜收件人号码", "有人試猜收件人號碼", "Chiffres d’un destinataire devinés", "Ziffern eines Empfängers geraten", "Cifras de un destinatario adivinadas"},
	"track.carrier":          {"Carrier", "承运商", "承運商", "Transporteur", "Zusteller", "Transportista"},
	"track.due":              {"Collect by", "请于此前取件", "請於此前取件", "À retirer avant", "Abholen bis", "Recoger antes de"},

	"locker":         {"Locker", "快递柜", "智慧櫃", "Consigne", "Paketschrank", "Taquilla"},
	"compartment":    {"Compartment", "格口", "格位", "Casier", "Fach", "Compartimento"},
	"locker.online":  {"Online", "在线", "連線中", "En ligne", "Online", "En línea"},
	"locker.offline": {"Offline", "离线", "離線", "Hors ligne", "Offline", "Sin conexión"},
	"locker.never":   {"Never connected", "从未连接", "從未連線", "Jamais connectée", "Noch nie verbunden", "Nunca conectada"},
	"since":          {"since", "自", "自", "depuis", "seit", "desde"},
	"last.seen":      {"last seen", "最后在线", "最後連線", "vue le", "zuletzt gesehen", "vista por última vez"},

	"pickup.waiting":   {"Waiting for you", "等待取件", "等待取件", "Vous attend", "Wartet auf Sie", "Le espera"},
	"pickup.overdue":   {"Overdue, still there", "已逾期，仍在柜中", "已逾期，仍在櫃中", "En retard, toujours là", "Überfällig, noch da", "Vencido, sigue ahí"},
	"pickup.collected": {"Collected", "已取件", "已取件", "Retiré", "Abgeholt", "Recogido"},
	"pickup.returned":  {"Taken out by staff", "已由工作人员取出", "已由工作人員取出", "Retiré par le personnel", "Vom Personal entnommen", "Retirado por el personal"},

	"door.closed":   {"closed", "关闭", "關閉", "fermée", "zu", "cerrada"},
	"door.open":     {"open", "打开", "開啟", "ouverte", "offen", "abierta"},
	"door.jammed":   {"jammed", "卡住", "卡住", "bloquée", "klemmt", "atascada"},
	"door.never":    {"not connected yet", "尚未连接", "尚未連線", "pas encore connectée", "noch nicht verbunden", "aún sin conectar"},
	"door.unknown":  {"not known", "未知", "未知", "inconnue", "unbekannt", "desconocida"},
	"grid.free":     {"free", "空闲", "空閒", "libre", "frei", "libre"},
	"grid.reserved": {"reserved", "已预留", "已預留", "réservé", "reserviert", "reservado"},
	"grid.occupied": {"occupied", "占用", "使用中", "occupé", "belegt", "ocupado"},
	"grid.blocked":  {"blocked", "停用", "停用", "bloqué", "gesperrt", "bloqueado"},
	"grid.cleaning": {"cleaning", "清洁中", "清潔中", "nettoyage", "Reinigung", "limpieza"},

	"delivery.created":      {"announced", "已登记", "已登記", "annoncée", "angekündigt", "anunciada"},
	"delivery.doors_opened": {"doors opened", "已开门", "已開門", "portes ouvertes", "Türen geöffnet", "puertas abiertas"},
	"delivery.delivered":    {"in the locker", "已入柜", "已入櫃", "en consigne", "im Schrank", "en la taquilla"},
	"delivery.correcting":   {"being corrected", "更正中", "更正中", "en correction", "in Korrektur", "en corrección"},
	"delivery.picked_up":    {"collected", "已取件", "已取件", "retirée", "abgeholt", "recogida"},
	"delivery.failed":       {"failed", "失败", "失敗", "échouée", "gescheitert", "fallida"},
	"delivery.expired":      {"expired", "已过期", "已逾期", "expirée", "abgelaufen", "vencida"},
	"delivery.cancelled":    {"cancelled", "已取消", "已取消", "annulée", "storniert", "cancelada"},

	"outbox.pending":    {"waiting", "等待", "等待", "en attente", "wartet", "en espera"},
	"outbox.delivering": {"being sent", "发送中", "傳送中", "envoi en cours", "wird gesendet", "enviando"},
	"outbox.success":    {"delivered", "成功", "成功", "remis", "zugestellt", "entregado"},
	"outbox.retrying":   {"will be retried", "将重试", "將重試", "sera réessayé", "neuer Versuch folgt", "se reintentará"},
	"outbox.failed":     {"failed", "失败", "失敗", "échoué", "gescheitert", "fallido"},
	"outbox.dead":       {"given up", "已放弃", "已放棄", "abandonné", "aufgegeben", "abandonado"},
	"outbox.paused":     {"paused", "已暂停", "已暫停", "en pause", "angehalten", "en pausa"},

	"exception.door_left_open":     {"Door left open", "柜门未关", "櫃門未關", "Porte restée ouverte", "Tür offen geblieben", "Puerta abierta"},
	"exception.deposit_unverified": {"Deposit not verified", "投递未确认", "投遞未確認", "Dépôt non vérifié", "Einlage ungeklärt", "Depósito sin verificar"},
	"exception.item_missing":       {"Parcel missing", "包裹缺失", "包裹遺失", "Colis manquant", "Paket fehlt", "Falta el paquete"},
	"exception.bad_signature":      {"Not signed by the cabinet", "非快递柜签名", "非智慧櫃簽名", "Non signé par la consigne", "Nicht vom Schrank signiert", "Sin firma de la taquilla"},
	"exception.bad_batch":          {"Unreadable report", "报告无法读取", "報告無法讀取", "Rapport illisible", "Unlesbare Meldung", "Informe ilegible"},
	"exception.epoch_conflict":     {"Store of another cabinet", "其他快递柜的存储", "其他智慧櫃的儲存", "Mémoire d’une autre consigne", "Speicher eines anderen Schranks", "Memoria de otra taquilla"},
	"exception.store_fork":         {"Copied or rolled-back store", "存储被复制或回滚", "儲存遭複製或回復", "Mémoire copiée ou restaurée", "Kopierter oder zurückgesetzter Speicher", "Memoria copiada o restaurada"},
	"exception.foreign_reference":  {"Reference to another cabinet", "引用了其他快递柜", "引用了其他智慧櫃", "Référence à une autre consigne", "Verweis auf einen anderen Schrank", "Referencia a otra taquilla"},
	"exception.duplicate_identity": {"Two agents, one identity", "两个代理同一身份", "兩個代理同一身分", "Deux agents, une identité", "Zwei Agenten, eine Identität", "Dos agentes, una identidad"},
	"exception.contents_mismatch":  {"Contents disagree", "格口内容不一致", "格口內容不一致", "Contenu divergent", "Inhalt widersprüchlich", "Contenido discrepante"},
	"exception.too_many_epochs":    {"New stores without end", "不断重建存储", "不斷重建儲存", "Nouvelles mémoires sans fin", "Neue Speicher ohne Ende", "Memorias nuevas sin fin"},
	"exception.keypad_locked":      {"Keypad locked", "键盘已锁定", "鍵盤已鎖定", "Clavier verrouillé", "Tastatur gesperrt", "Teclado bloqueado"},
	"exception.config_refused":     {"Configuration refused", "配置被拒绝", "設定被拒絕", "Configuration refusée", "Konfiguration abgelehnt", "Configuración rechazada"},
	"exception.door_not_opening":   {"Door does not open", "柜门打不开", "櫃門打不開", "La porte ne s’ouvre pas", "Tür öffnet nicht", "La puerta no se abre"},
	"exception.unknown_label":      {"Label of no known parcel", "标签不属于任何已知包裹", "標籤不屬於任何已知包裹", "Étiquette d’aucun colis connu", "Etikett keines bekannten Pakets", "Etiqueta de ningún paquete conocido"},
	"exception.reported_stolen":    {"Reported stolen", "已报失窃", "已通報失竊", "Déclarée volée", "Als gestohlen gemeldet", "Denunciada como robada"},

	"exception.compartment_blocked": {"Compartment blocked by a courier", "快递员停用了格口", "快遞員停用了格口", "Casier bloqué par un livreur", "Fach von Kurier gesperrt", "Compartimento bloqueado por un repartidor"},

	"exception.overdue": {"Collection overdue", "取件逾期", "取件逾期", "Retrait en retard", "Abholung überfällig", "Recogida vencida"},
	"severity.low":      {"low", "低", "低", "faible", "niedrig", "baja"},
	"severity.medium":   {"medium", "中", "中", "moyenne", "mittel", "media"},
	"severity.high":     {"high", "高", "高", "élevée", "hoch", "alta"},
	"opening.requested": {"requested", "已请求", "已請求", "demandée", "angefordert", "solicitada"},
	"opening.running":   {"running", "进行中", "進行中", "en cours", "läuft", "en curso"},

	"layout.title":                {"Layout", "布局", "配置", "Disposition", "Aufteilung", "Distribución"},
	"layout.lead":                 {"Describe each compartment. Pickup numbers count by shelf, column and row. A compartment in use keeps its place and label. Measures inside are in cm, all three or none.", "请描述每个格口。取件编号按柜列、列和行计数。使用中的格口保持其位置和标签。内部尺寸以厘米为单位，三项都填或都不填。", "請描述每一格。取件編號依櫃列、欄和列計數。使用中的格口保持其位置和標籤。內部尺寸以公分為單位，三項都填或都不填。", "Décrivez chaque casier. Les numéros de retrait suivent le bloc, la colonne et la rangée. Un casier utilisé garde sa place et son étiquette. Les dimensions intérieures sont en cm, toutes les trois ou aucune.", "Beschreiben Sie jedes Fach. Abholnummern zählen nach Block, Spalte und Reihe. Ein benutztes Fach behält Platz und Beschriftung. Innenmaße sind in cm, alle drei oder keines.", "Describa cada compartimento. Los números de recogida siguen módulo, columna y fila. Uno en uso conserva su lugar y etiqueta. Las medidas interiores van en cm, las tres o ninguna."},
	"layout.saved":                {"Saved. The cabinet gets the layout when it is connected.", "已保存。快递柜联网后将收到此布局。", "已儲存。智慧櫃連線後將收到此配置。", "Enregistré. La consigne reçoit la disposition dès qu’elle est connectée.", "Gespeichert. Der Schrank erhält die Aufteilung, sobald er verbunden ist.", "Guardado. La taquilla recibe la distribución al conectarse."},
	"layout.drawn":                {"Doors with their labels", "门及其标签", "門及其標籤", "Portes et étiquettes", "Türen mit Beschriftung", "Puertas con sus etiquetas"},
	"layout.staff":                {"Staff", "员工", "員工", "Personnel", "Personal", "Personal"},
	"layout.used":                 {"in use", "使用中", "使用中", "utilisé", "in Benutzung", "en uso"},
	"layout.door":                 {"Door number", "门号", "門號", "Numéro de porte", "Türnummer", "Número de puerta"},
	"layout.shelf":                {"Shelf", "柜列", "櫃列", "Bloc", "Block", "Módulo"},
	"layout.column":               {"Column", "列", "欄", "Colonne", "Spalte", "Columna"},
	"layout.row":                  {"Row", "行", "列", "Rangée", "Reihe", "Fila"},
	"layout.size":                 {"Size", "尺寸", "尺寸", "Taille", "Größe", "Tamaño"},
	"happens.door_closed_on_site": {"The cabinet is asked for the state of its doors.", "系统将向快递柜查询柜门状态。", "系統將向智慧櫃查詢櫃門狀態。", "La consigne doit dire l’état de ses portes.", "Der Schrank wird nach dem Stand seiner Türen gefragt.", "Se pregunta a la taquilla por el estado de sus puertas."},
	"happens.deposit_confirmed":   {"The deposit is settled, and the pickup code opens the door.", "存入被确认，取件码可打开此门。", "存入獲確認，取件碼可開啟此門。", "Le dépôt est réglé, et le code de retrait ouvre la porte.", "Die Einlage gilt, und der Abholcode öffnet die Tür.", "El depósito queda confirmado y el código de recogida abre la puerta."},
	"happens.deposit_cancelled":   {"The parcel is removed, its code opens nothing more, and the compartment is free.", "包裹被移除，其取件码失效，格口变为空闲。", "包裹被移除，其取件碼失效，格變為空閒。", "Le colis est retiré, son code n’ouvre plus rien, et le casier est libre.", "Das Paket wird ausgetragen, sein Code öffnet nichts mehr, und das Fach ist frei.", "El paquete se da de baja, su código ya no abre nada y el compartimento queda libre."},
	"happens.package_lost":        {"The parcel is removed, its code opens nothing more, and the compartment is free.", "包裹被移除，其取件码失效，格口变为空闲。", "包裹被移除，其取件碼失效，格變為空閒。", "Le colis est retiré, son code n’ouvre plus rien, et le casier est libre.", "Das Paket wird ausgetragen, sein Code öffnet nichts mehr, und das Fach ist frei.", "El paquete se da de baja, su código ya no abre nada y el compartimento queda libre."},
	"happens.package_returned":    {"The parcel is removed, its code opens nothing more, and the compartment is free.", "包裹被移除，其取件码失效，格口变为空闲。", "包裹被移除，其取件碼失效，格變為空閒。", "Le colis est retiré, son code n’ouvre plus rien, et le casier est libre.", "Das Paket wird ausgetragen, sein Code öffnet nichts mehr, und das Fach ist frei.", "El paquete se da de baja, su código ya no abre nada y el compartimento queda libre."},
	"happens.extended":            {"The pickup code opens the door for longer.", "取件码的有效期延长。", "取件碼的有效期延長。", "Le code de retrait ouvre la porte plus longtemps.", "Der Abholcode öffnet die Tür länger.", "El código de recogida abre la puerta durante más tiempo."},
	"happens.package_found":       {"Nothing changes at the cabinet.", "快递柜不发生变化。", "智慧櫃不發生變化。", "Rien ne change à la consigne.", "Am Schrank ändert sich nichts.", "En la taquilla no cambia nada."},
	"happens.no_action":           {"Nothing changes at the cabinet.", "快递柜不发生变化。", "智慧櫃不發生變化。", "Rien ne change à la consigne.", "Am Schrank ändert sich nichts.", "En la taquilla no cambia nada."},
	"layout.width":                {"Inner width, cm", "内宽（厘米）", "內寬（公分）", "Largeur intérieure, cm", "Innenbreite, cm", "Ancho interior, cm"},
	"layout.height":               {"Inner height, cm", "内高（厘米）", "內高（公分）", "Hauteur intérieure, cm", "Innenhöhe, cm", "Alto interior, cm"},
	"layout.depth":                {"Inner depth, cm", "内深（厘米）", "內深（公分）", "Profondeur intérieure, cm", "Innentiefe, cm", "Fondo interior, cm"},
	"layout.pickup":               {"For pickup", "用于取件", "供取件", "Pour le retrait", "Für Abholung", "Para recogida"},
	"layout.wiring":               {"Wiring", "接线", "接線", "Câblage", "Verkabelung", "Cableado"},
	"layout.board":                {"Board", "控制板", "控制板", "Carte", "Platine", "Placa"},
	"layout.channel":              {"Channel", "通道", "通道", "Canal", "Kanal", "Canal"},
	"layout.switch":               {"The door’s switch is set while the door is", "门开关置位时门的状态", "門開關置位時門的狀態", "Le contact est actif quand la porte est", "Der Türschalter ist gesetzt, solange die Tür", "El interruptor está activo con la puerta"},
	"layout.closed":               {"closed", "关闭", "關閉", "fermée", "geschlossen ist", "cerrada"},
	"layout.open":                 {"open (inverted)", "打开（反相）", "開啟（反相）", "ouverte (inversé)", "offen ist (umgekehrt)", "abierta (invertido)"},
	"layout.yes":                  {"Yes", "是", "是", "Oui", "Ja", "Sí"},
	"layout.no":                   {"No, staff only", "否，仅限员工", "否，僅限員工", "Non, personnel seulement", "Nein, nur Personal", "No, solo personal"},
	"layout.draw":                 {"Draw again", "重新绘制", "重新繪製", "Redessiner", "Neu zeichnen", "Dibujar de nuevo"},
	"layout.add":                  {"Add a compartment", "添加格口", "新增格口", "Ajouter un casier", "Fach hinzufügen", "Añadir un compartimento"},
	"layout.remove":               {"Remove", "移除", "移除", "Retirer", "Entfernen", "Quitar"},
	"layout.save":                 {"Save the layout", "保存布局", "儲存配置", "Enregistrer la disposition", "Aufteilung speichern", "Guardar la distribución"},

	"console.title":      {"Operations console", "运营控制台", "營運主控台", "Console d’exploitation", "Betriebskonsole", "Consola de operaciones"},
	"console.login":      {"Sign in", "登录", "登入", "Connexion", "Anmelden", "Iniciar sesión"},
	"console.email":      {"Email", "邮箱", "電子郵件", "E-mail", "E-Mail", "Correo electrónico"},
	"console.password":   {"Password", "密码", "密碼", "Mot de passe", "Passwort", "Contraseña"},
	"console.logout":     {"Sign out", "退出", "登出", "Déconnexion", "Abmelden", "Cerrar sesión"},
	"console.expired":    {"This form was open too long. Please sign in again.", "表单已过期，请重新登录。", "表單已逾時，請重新登入。", "Ce formulaire est resté ouvert trop longtemps. Reconnectez-vous.", "Dieses Formular war zu lange offen. Bitte neu anmelden.", "El formulario ha caducado. Inicie sesión de nuevo."},
	"console.lost":       {"Connection lost. Shown as of", "连接已断开。显示时间", "連線中斷。顯示時間", "Connexion perdue. Affiché à", "Verbindung verloren. Stand", "Conexión perdida. Mostrado a las"},
	"console.noscript":   {"Without script this page does not follow by itself: reload it to see changes.", "未启用脚本时页面不会自动更新：请刷新查看变化。", "未啟用指令碼時頁面不會自動更新：請重新整理查看變化。", "Sans script, cette page ne suit pas d’elle-même : rechargez-la pour voir les changements.", "Ohne Script folgt diese Seite nicht von selbst: bitte neu laden.", "Sin script esta página no se actualiza sola: recárguela para ver cambios."},
	"console.cabinets":   {"Cabinets", "快递柜", "智慧櫃", "Consignes", "Schränke", "Taquillas"},
	"console.openings":   {"Running openings", "进行中的开门", "進行中的開門", "Ouvertures en cours", "Laufende Öffnungen", "Aperturas en curso"},
	"console.deliveries": {"Newest deliveries", "最新投递", "最新投遞", "Dernières livraisons", "Neueste Lieferungen", "Últimas entregas"},
	"console.webhooks":   {"Webhook deliveries", "Webhook 投递", "Webhook 投遞", "Envois de webhooks", "Webhook-Zustellungen", "Envíos de webhooks"},
	"console.none":       {"Nothing here right now.", "目前没有内容。", "目前沒有內容。", "Rien pour le moment.", "Zurzeit nichts.", "Nada por ahora."},
	"console.nocabinet":  {"No cabinet is set up yet. Enrol one and it appears here.", "尚未设置快递柜。注册后将显示在此。", "尚未設定智慧櫃。註冊後將顯示於此。", "Aucune consigne n’est installée. Enrôlez-en une et elle apparaîtra ici.", "Noch ist kein Schrank eingerichtet. Nach der Anmeldung erscheint er hier.", "Aún no hay taquillas. Registre una y aparecerá aquí."},
	"console.more":       {"Only the first cabinets are shown.", "仅显示前若干快递柜。", "僅顯示前幾台智慧櫃。", "Seules les premières consignes sont affichées.", "Nur die ersten Schränke werden gezeigt.", "Solo se muestran las primeras taquillas."},
	"console.key":        {"Signs", "图例", "圖例", "Légende", "Zeichen", "Leyenda"},
	"console.norights":   {"Your account may not see anything here yet. Ask an administrator of your business for rights.", "您的帐户目前没有可查看的内容，请向管理员申请权限。", "您的帳戶目前沒有可檢視的內容，請向管理員申請權限。", "Votre compte ne peut encore rien voir ici. Demandez des droits à un administrateur de votre entreprise.", "Ihr Konto darf hier noch nichts sehen. Bitten Sie einen Administrator Ihres Unternehmens um Rechte.", "Su cuenta aún no puede ver nada aquí. Pida permisos a un administrador de su empresa."},
	"console.doors":      {"Doors of %s", "%s 的柜门", "%s 的櫃門", "Portes de %s", "Türen von %s", "Puertas de %s"},
	"col.number":         {"Number", "编号", "編號", "Numéro", "Nummer", "Número"},
	"col.status":         {"Status", "状态", "狀態", "État", "Stand", "Estado"},
	"col.cabinet":        {"Cabinet", "快递柜", "智慧櫃", "Consigne", "Schrank", "Taquilla"},
	"col.when":           {"When", "时间", "時間", "Quand", "Wann", "Cuándo"},
	"col.event":          {"Event", "事件", "事件", "Événement", "Ereignis", "Evento"},
	"col.attempts":       {"Attempts", "尝试次数", "嘗試次數", "Essais", "Versuche", "Intentos"},
	"col.type":           {"Type", "类型", "類型", "Type", "Art", "Tipo"},
	"col.severity":       {"Severity", "严重性", "嚴重性", "Gravité", "Schwere", "Gravedad"},
	"col.doors":          {"Doors", "柜门", "櫃門", "Portes", "Türen", "Puertas"},
}
