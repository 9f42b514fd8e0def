package locale

// agents are the words of the pages where people decide about programs that
// want to act for them.
var agents = map[string]texts{
	"agent.title": {"Connect a program", "连接程序", "連接程式", "Connecter un programme", "Ein Programm verbinden", "Conectar un programa"},
	"agent.login": {"Sign in to decide whether this program may act for you.", "请登录，以决定是否允许该程序代您操作。", "請登入，以決定是否允許該程式代您操作。", "Connectez-vous pour décider si ce programme peut agir pour vous.", "Melden Sie sich an, um zu entscheiden, ob dieses Programm für Sie handeln darf.", "Inicie sesión para decidir si este programa puede actuar por usted."},
	"agent.lead":  {"A program wants to act for you. Decide what it may do.", "有程序希望代您操作。请决定允许它做什么。", "有程式希望代您操作。請決定允許它做什麼。", "Un programme veut agir pour vous. Décidez de ce qu’il peut faire.", "Ein Programm möchte für Sie handeln. Entscheiden Sie, was es darf.", "Un programa quiere actuar por usted. Decida qué puede hacer."},
	"agent.who":   {"The program", "程序", "程式", "Le programme", "Das Programm", "El programa"},
	"agent.name":  {"It calls itself", "自称名称", "自稱名稱", "Il se nomme", "Es nennt sich", "Se hace llamar"},

	"agent.unnamed": {"no name", "未提供名称", "未提供名稱", "sans nom", "ohne Namen", "sin nombre"},
	"agent.host":    {"The answer goes to", "结果将发送至", "結果將傳送至", "La réponse va à", "Die Antwort geht an", "La respuesta va a"},
	"agent.local":   {"a program on this computer", "此电脑上的程序", "此電腦上的程式", "un programme de cet ordinateur", "ein Programm auf diesem Rechner", "un programa de este equipo"},
	"agent.site":    {"It is described at", "其说明位于", "其說明位於", "Il est décrit sur", "Beschrieben ist es bei", "Está descrito en"},
	"agent.claim":   {"The name is the program’s own claim. It has not been checked.", "名称由程序自行声明，未经任何核实。", "名稱由程式自行聲明，未經任何查核。", "Le nom est celui que le programme se donne. Personne ne l’a vérifié.", "Den Namen gibt sich das Programm selbst. Niemand hat ihn geprüft.", "El nombre lo da el propio programa. Nadie lo ha comprobado."},
	"agent.whose":   {"On whose behalf", "代表谁操作", "代表誰操作", "Pour le compte de", "In wessen Namen", "En nombre de quién"},

	"agent.account":  {"Account", "账户", "帳戶", "Compte", "Konto", "Cuenta"},
	"agent.business": {"Business", "企业", "企業", "Entreprise", "Unternehmen", "Empresa"},
	"agent.reach":    {"What it reaches", "可访问的范围", "可存取的範圍", "Ce qu’il atteint", "Was es erreicht", "A qué accede"},
	"agent.may":      {"What it may do", "允许它做什么", "允許它做什麼", "Ce qu’il peut faire", "Was es darf", "Qué puede hacer"},
	"agent.ask":      {"Before it changes anything", "在更改任何内容之前", "在變更任何內容之前", "Avant toute modification", "Bevor es etwas ändert", "Antes de cambiar algo"},
	"ask.all":        {"Ask me first", "先询问我", "先詢問我", "Me demander d’abord", "Zuerst fragen", "Preguntarme primero"},
	"ask.high":       {"Ask me first about what cannot be undone", "无法撤销的操作先询问我", "無法復原的操作先詢問我", "Me demander pour ce qui est irréversible", "Bei Unwiderruflichem zuerst fragen", "Preguntarme por lo irreversible"},
	"ask.never":      {"Do not ask", "不询问", "不詢問", "Ne pas demander", "Nicht fragen", "No preguntar"},
	"ask.more.all":   {"Every change waits at /mcp-approvals until it is approved.", "每项更改都在 /mcp-approvals 等待批准。", "每項變更都在 /mcp-approvals 等待核准。", "Chaque changement attend sur /mcp-approvals d’être approuvé.", "Jede Änderung wartet unter /mcp-approvals auf die Freigabe.", "Cada cambio espera en /mcp-approvals hasta que se apruebe."},
	"ask.more.high":  {"Cancelling, doors, deleting and the like wait; other changes are made at once.", "取消、开门、删除等操作需等待；其他更改立即执行。", "取消、開門、刪除等操作需等待；其他變更立即執行。", "Annulations, portes, suppressions et autres attendent ; le reste se fait aussitôt.", "Stornieren, Türen, Löschen und Ähnliches warten; anderes geschieht sofort.", "Cancelar, puertas, borrar y similares esperan; lo demás se hace al momento."},
	"ask.more.never": {"It changes things by itself, as far as it may.", "它在权限范围内自行更改。", "它在權限範圍內自行變更。", "Il modifie seul ce qu’il a le droit de modifier.", "Es ändert selbst, was es darf.", "Cambia por sí mismo lo que puede."},
	"agent.limits": {"Never more than your own account may. It ends when you take it back, or when the program does not come for 30 days.", "权限不会超过您自己的账户。您可随时收回；程序 30 天未使用也会失效。", "權限不會超過您自己的帳戶。您可隨時收回；程式 30 天未使用也會失效。",
		"Jamais plus que votre propre compte. Cela prend fin quand vous le retirez, ou si le programme ne revient pas pendant 30 jours.", "Nie mehr, als Ihr eigenes Konto darf. Es endet, wenn Sie es zurücknehmen oder das Programm 30 Tage nicht kommt.", "Nunca más que su propia cuenta. Termina cuando usted lo retira o si el programa no vuelve en 30 días."},
	"agent.caution": {"Allow it only if you have just started this yourself.", "仅当此操作由您本人刚刚发起时才允许。", "僅當此操作由您本人剛剛發起時才允許。", "Ne l’autorisez que si vous venez de lancer cela vous-même.", "Erlauben Sie es nur, wenn Sie dies gerade selbst begonnen haben.", "Permítalo solo si usted mismo acaba de iniciarlo."},
	"agent.nothing": {"Your account may do nothing that could be passed on. Ask an administrator of your business.", "您的账户没有可转授的权限。请联系企业管理员。", "您的帳戶沒有可轉授的權限。請聯絡企業管理員。", "Votre compte n’a aucun droit à transmettre. Adressez-vous à un administrateur de votre entreprise.", "Ihr Konto darf nichts, was sich weitergeben ließe. Fragen Sie eine Verwalterin oder einen Verwalter Ihres Unternehmens.", "Su cuenta no tiene ningún permiso que ceder. Pregunte a un administrador de su empresa."},

	"agent.allow":   {"Allow", "允许", "允許", "Autoriser", "Erlauben", "Permitir"},
	"agent.refuse":  {"Refuse", "拒绝", "拒絕", "Refuser", "Ablehnen", "Rechazar"},
	"agent.switch":  {"Use another account", "使用其他账户", "使用其他帳戶", "Utiliser un autre compte", "Anderes Konto nehmen", "Usar otra cuenta"},
	"agent.expired": {"This page was open too long. Please decide again.", "页面已过期，请重新决定。", "頁面已逾時，請重新決定。", "Cette page est restée ouverte trop longtemps. Décidez à nouveau.", "Diese Seite war zu lange offen. Bitte neu entscheiden.", "Esta página estuvo abierta demasiado tiempo. Decida de nuevo."},
	"agent.choose":  {"Choose one of the things below.", "请从下列选项中选择一项。", "請從下列選項中選擇一項。", "Choisissez parmi les possibilités ci-dessous.", "Wählen Sie eine der Möglichkeiten unten.", "Elija una de las opciones siguientes."},

	"agent.oops.title": {"This program cannot connect", "该程序无法连接", "該程式無法連接", "Ce programme ne peut pas se connecter", "Dieses Programm kann nicht verbunden werden", "Este programa no puede conectarse"},
	"agent.oops.body":  {"Its request is not in order. Nothing was sent to it. Start again in the program.", "其请求有误，未向其发送任何内容。请在程序中重新开始。", "其請求有誤，未向其傳送任何內容。請在程式中重新開始。", "Sa demande n’est pas correcte. Rien ne lui a été envoyé. Recommencez dans le programme.", "Seine Anfrage ist nicht in Ordnung. Es wurde nichts gesendet. Beginnen Sie im Programm neu.", "Su solicitud no es correcta. No se le ha enviado nada. Empiece de nuevo en el programa."},
	"agent.oops.back":  {"Tell the program at %s", "告知位于 %s 的程序", "告知位於 %s 的程式", "Le dire au programme sur %s", "Dem Programm bei %s mitteilen", "Decírselo al programa en %s"},
	"agent.oops.maker": {"For the makers of the program:", "供程序开发者参考：", "供程式開發者參考：", "Pour qui développe le programme :", "Für die Herstellung des Programms:", "Para quien desarrolla el programa:"},

	"reach.all":        {"Operations, locker and developer tools", "运营、快递柜与开发工具", "營運、智慧櫃與開發工具", "Outils d’exploitation, de consignes et de développement", "Werkzeuge für Betrieb, Schließfachanlagen und Entwicklung", "Herramientas de operación, taquillas y desarrollo"},
	"reach.operations": {"Operations tools", "运营工具", "營運工具", "Outils d’exploitation", "Werkzeuge für den Betrieb", "Herramientas de operación"},
	"reach.lockers":    {"Locker tools", "快递柜工具", "智慧櫃工具", "Outils de consignes", "Werkzeuge für Schließfachanlagen", "Herramientas de taquillas"},
	"reach.developer":  {"Developer tools", "开发工具", "開發工具", "Outils de développement", "Werkzeuge für die Entwicklung", "Herramientas de desarrollo"},

	"profile.asked":             {"Only what it asks for", "仅限其所请求的权限", "僅限其所要求的權限", "Seulement ce qu’il demande", "Nur, worum es bittet", "Solo lo que pide"},
	"profile.ops-readonly":      {"Look at daily operations", "查看日常运营", "檢視日常營運", "Consulter l’exploitation courante", "Den Betrieb ansehen", "Consultar la operación diaria"},
	"profile.support":           {"Look up orders for customer service", "为客服查询订单", "為客服查詢訂單", "Consulter les commandes pour le service client", "Aufträge für den Kundendienst nachsehen", "Consultar pedidos para atención al cliente"},
	"profile.ops-write":         {"Run daily operations", "处理日常运营", "處理日常營運", "Mener l’exploitation courante", "Den Betrieb führen", "Llevar la operación diaria"},
	"profile.wms-readonly":      {"Look at the warehouse", "查看仓库", "檢視倉庫", "Consulter l’entrepôt", "Das Lager ansehen", "Consultar el almacén"},
	"profile.datasets-readonly": {"Look at datasets", "查看数据集", "檢視資料集", "Consulter les jeux de données", "Datensätze ansehen", "Consultar conjuntos de datos"},
	"profile.alliance-readonly": {"Look at the alliance", "查看联盟", "檢視聯盟", "Consulter l’alliance", "Die Allianz ansehen", "Consultar la alianza"},
	"profile.full":              {"Everything that you may", "您的全部权限", "您的全部權限", "Tout ce que vous pouvez", "Alles, was Sie dürfen", "Todo lo que usted puede"},

	"profile.more.asked":             {"Named by the program:", "程序列出的权限：", "程式列出的權限：", "Indiqué par le programme :", "Vom Programm genannt:", "Indicado por el programa:"},
	"profile.more.ops-readonly":      {"It reads orders, labels, routes, drivers, addresses, figures and approvals. It changes nothing.", "读取订单、面单、路线、司机、地址、统计和审批，不作任何更改。", "讀取訂單、託運單、路線、司機、地址、統計和審批，不作任何變更。", "Il lit les commandes, étiquettes, tournées, chauffeurs, adresses, chiffres et approbations. Il ne modifie rien.", "Es liest Aufträge, Etiketten, Touren, Fahrer, Adressen, Zahlen und Freigaben. Es ändert nichts.", "Lee pedidos, etiquetas, rutas, conductores, direcciones, cifras y aprobaciones. No cambia nada."},
	"profile.more.support":           {"It reads orders, addresses, figures and approvals. It changes nothing.", "读取订单、地址、统计和审批，不作任何更改。", "讀取訂單、地址、統計和審批，不作任何變更。", "Il lit les commandes, adresses, chiffres et approbations. Il ne modifie rien.", "Es liest Aufträge, Adressen, Zahlen und Freigaben. Es ändert nichts.", "Lee pedidos, direcciones, cifras y aprobaciones. No cambia nada."},
	"profile.more.ops-write":         {"It reads what daily operations need and changes orders, labels, routes and approvals.", "读取日常运营所需信息，并可更改订单、面单、路线和审批。", "讀取日常營運所需資訊，並可變更訂單、託運單、路線和審批。", "Il lit ce qu’il faut à l’exploitation et modifie commandes, étiquettes, tournées et approbations.", "Es liest, was der Betrieb braucht, und ändert Aufträge, Etiketten, Touren und Freigaben.", "Lee lo que la operación necesita y cambia pedidos, etiquetas, rutas y aprobaciones."},
	"profile.more.wms-readonly":      {"It reads stock and orders. It changes nothing.", "读取库存和订单，不作任何更改。", "讀取庫存和訂單，不作任何變更。", "Il lit les stocks et les commandes. Il ne modifie rien.", "Es liest Bestände und Aufträge. Es ändert nichts.", "Lee existencias y pedidos. No cambia nada."},
	"profile.more.datasets-readonly": {"It reads datasets. It changes nothing.", "读取数据集，不作任何更改。", "讀取資料集，不作任何變更。", "Il lit les jeux de données. Il ne modifie rien.", "Es liest Datensätze. Es ändert nichts.", "Lee conjuntos de datos. No cambia nada."},
	"profile.more.alliance-readonly": {"It reads what partners of the alliance share. It changes nothing.", "读取联盟伙伴共享的信息，不作任何更改。", "讀取聯盟夥伴分享的資訊，不作任何變更。", "Il lit ce que partagent les partenaires de l’alliance. Il ne modifie rien.", "Es liest, was Partner der Allianz teilen. Es ändert nichts.", "Lee lo que comparten los socios de la alianza. No cambia nada."},
	"profile.more.full":              {"It reads and changes all that your account can reach. Choose this only for programs that you trust fully.", "读取并更改您账户可触及的一切。仅对完全信任的程序选择此项。", "讀取並變更您帳戶可及的一切。僅對完全信任的程式選擇此項。", "Il lit et modifie tout ce que votre compte atteint. Seulement pour un programme en qui vous avez toute confiance.", "Es liest und ändert alles, was Ihr Konto erreicht. Nur für Programme, denen Sie ganz vertrauen.", "Lee y cambia todo lo que su cuenta alcanza. Solo para programas de plena confianza."},
}
