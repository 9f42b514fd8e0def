package locale

import "strings"

// Scope says in a few words what a scope lets one do: what it is about, and whether it
// may change that.
func Scope(lang, scope string) string {
	area, verb, _ := strings.Cut(scope, ":")
	if _, ok := scopes["scope."+area]; !ok {
		return scope
	}
	return Word(lang, "scope."+verb, Word(lang, "scope."+area))
}

// scopes are what scopes are about, and what they let one do with it.
var scopes = map[string]texts{
	"scope.read":              {"%s: see", "%s：查看", "%s：檢視", "%s : voir", "%s: ansehen", "%s: ver"},
	"scope.write":             {"%s: see and change", "%s：查看和更改", "%s：檢視與變更", "%s : voir et modifier", "%s: ansehen und ändern", "%s: ver y cambiar"},
	"scope.address":           {"Addresses", "地址", "地址", "Adresses", "Adressen", "Direcciones"},
	"scope.alliance":          {"Work for other businesses", "为其他企业承接的业务", "為其他企業承接的業務", "Travail pour d’autres entreprises", "Arbeit für andere Unternehmen", "Trabajo para otras empresas"},
	"scope.analytics":         {"Reports and figures", "报表和数据", "報表與數據", "Rapports et chiffres", "Berichte und Zahlen", "Informes y cifras"},
	"scope.approvals":         {"Approvals of what agents ask for", "代理请求的审批", "代理請求的核准", "Approbations des demandes d’agents", "Freigaben für Agenten", "Aprobaciones de lo que piden los agentes"},
	"scope.boards":            {"Day boards", "每日看板", "每日看板", "Tableaux du jour", "Tagestafeln", "Tableros del día"},
	"scope.chat":              {"Conversations about orders", "订单对话", "訂單對話", "Conversations sur les commandes", "Gespräche über Aufträge", "Conversaciones sobre pedidos"},
	"scope.customer_shipping": {"Shipping by customers", "客户自助寄件", "客戶自助寄件", "Expéditions des clients", "Versand durch Kunden", "Envíos de los clientes"},
	"scope.datasets":          {"Data sets", "数据集", "資料集", "Jeux de données", "Datensätze", "Conjuntos de datos"},
	"scope.drivers":           {"Drivers", "司机", "司機", "Livreurs", "Fahrer", "Conductores"},
	"scope.handoff":           {"Handovers of goods", "货物交接", "貨物交接", "Remises de marchandises", "Übergaben von Waren", "Entregas de mercancías"},
	"scope.labels":            {"Shipping labels and rates", "运单和运价", "運單與運價", "Étiquettes et tarifs d’expédition", "Versandetiketten und Tarife", "Etiquetas y tarifas de envío"},
	"scope.lockers":           {"Cabinets, doors and what lies in them", "快递柜、格口及其中的包裹", "智慧櫃、格口及其中的包裹", "Consignes, casiers et leur contenu", "Schränke, Fächer und ihr Inhalt", "Taquillas, puertas y su contenido"},
	"scope.orders":            {"Orders, tracking and proofs", "订单、追踪和凭证", "訂單、追蹤與憑證", "Commandes, suivi et preuves", "Aufträge, Sendungsverfolgung und Nachweise", "Pedidos, seguimiento y pruebas"},
	"scope.routes":            {"Routes and stops", "路线和站点", "路線與站點", "Tournées et arrêts", "Touren und Stopps", "Rutas y paradas"},
	"scope.settings":          {"People and settings of the business", "企业的人员和设置", "企業的人員與設定", "Personnes et réglages de l’entreprise", "Personen und Einstellungen des Unternehmens", "Personas y ajustes de la empresa"},
	"scope.storage":           {"Things kept in lockers", "寄存在柜中的物品", "寄存於櫃中的物品", "Objets gardés en consigne", "In Fächern verwahrte Sachen", "Objetos guardados en taquillas"},
	"scope.uniorder":          {"Orders across services", "跨服务订单", "跨服務訂單", "Commandes multi-services", "Aufträge über mehrere Dienste", "Pedidos entre servicios"},
	"scope.webhooks":          {"Webhooks and their deliveries", "Webhook 及其发送记录", "Webhook 及其傳送紀錄", "Webhooks et leurs envois", "Webhooks und ihre Sendungen", "Webhooks y sus envíos"},
	"scope.wms":               {"Warehouses", "仓库", "倉庫", "Entrepôts", "Lager", "Almacenes"},
}
