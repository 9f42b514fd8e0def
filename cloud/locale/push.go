package locale

// pushes are the titles of what drivers' apps are pushed, by type.
var pushes = map[string]texts{
	"push.order_assigned":         {"New order", "新订单", "新訂單", "Nouvelle commande", "Neuer Auftrag", "Nuevo pedido"},
	"push.order_unassigned":       {"An order is no longer yours", "一个订单已不归您", "一筆訂單已不歸您", "Une commande n’est plus à vous", "Ein Auftrag gehört nicht mehr Ihnen", "Un pedido ya no es suyo"},
	"push.order_updated":          {"An order has changed", "订单有变更", "訂單有變更", "Une commande a changé", "Ein Auftrag hat sich geändert", "Un pedido ha cambiado"},
	"push.order_cancelled":        {"An order was cancelled", "订单已取消", "訂單已取消", "Une commande est annulée", "Ein Auftrag wurde storniert", "Un pedido se ha cancelado"},
	"push.order_intercepted":      {"Stop: an order is held back", "请停止：订单被拦截", "請停止：訂單被攔截", "Arrêt : une commande est retenue", "Halt: ein Auftrag wird zurückgehalten", "Alto: un pedido queda retenido"},
	"push.route_assigned":         {"New route", "新路线", "新路線", "Nouvelle tournée", "Neue Tour", "Nueva ruta"},
	"push.route_updated":          {"Your route has changed", "您的路线有变更", "您的路線有變更", "Votre tournée a changé", "Ihre Tour hat sich geändert", "Su ruta ha cambiado"},
	"push.route_cancelled":        {"A route is no longer yours", "一条路线已不归您", "一條路線已不歸您", "Une tournée n’est plus à vous", "Eine Tour gehört nicht mehr Ihnen", "Una ruta ya no es suya"},
	"push.locker_doors_opened":    {"The locker is open", "快递柜已打开", "智慧櫃已開啟", "La consigne est ouverte", "Der Paketschrank ist offen", "La taquilla está abierta"},
	"push.locker_deposit_settled": {"The deposit is confirmed", "投放已确认", "投放已確認", "Le dépôt est confirmé", "Die Einlage ist bestätigt", "El depósito está confirmado"},
}
