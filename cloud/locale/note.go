package locale

import "strings"

// Note says what a cabinet or the cloud noted of an exception. The note itself is in
// English, in records and in the interface; any other text stays as it is.
func Note(lang, note string) string {
	if reason, ok := strings.CutPrefix(note, endedNote); ok {
		return Word(lang, "note."+endedNote, Word(lang, "end."+reason))
	}
	if _, ok := notes["note."+note]; !ok {
		first, rest, more := strings.Cut(note, "; ") // what followed
		if !more {
			return note
		}
		return Note(lang, first) + "; " + Note(lang, rest)
	}
	return Word(lang, "note."+note)
}

const endedNote = "the cabinet ended it as "

var notes = map[string]texts{
	"note.forced open, and no sensor sees what lies inside":                    {"The door was forced, and no sensor sees what lies inside", "门被强行打开，没有传感器能看到里面的物品", "門被強行打開，沒有感應器能看到裡面的物品", "La porte a été forcée, et aucun capteur ne voit ce qu’il y a dedans", "Die Tür wurde aufgebrochen, und kein Sensor sieht, was darin liegt", "La puerta fue forzada y ningún sensor ve lo que hay dentro"},
	"note.item gone while the door was open without a session":                 {"The sensor sees nothing any more since the door was forced", "门被强行打开后，传感器不再检测到物品", "門被強行打開後，感應器不再偵測到物品", "Depuis que la porte a été forcée, le capteur ne voit plus rien", "Seit die Tür aufgebrochen wurde, sieht der Sensor nichts mehr", "Desde que forzaron la puerta, el sensor ya no ve nada"},
	"note.item gone in an opening of staff, who stated nothing":                {"The sensor sees nothing any more since staff opened the door and stated nothing", "工作人员开门后未说明情况，传感器不再检测到物品", "工作人員開門後未說明情況，感應器不再偵測到物品", "Le capteur ne voit plus rien depuis que le personnel a ouvert la porte sans rien déclarer", "Seit Personal die Tür geöffnet und nichts dazu angegeben hat, sieht der Sensor nichts mehr", "El sensor ya no ve nada desde que el personal abrió la puerta y no declaró nada"},
	"note.item gone while nothing looked":                                      {"The sensor sees nothing any more since the cabinet started again", "柜机重新启动后，传感器不再检测到物品", "櫃機重新啟動後，感應器不再偵測到物品", "Depuis le redémarrage de la consigne, le capteur ne voit plus rien", "Seit der Schrank neu gestartet ist, sieht der Sensor nichts mehr", "Desde que la taquilla se reinició, el sensor ya no ve nada"},
	"note.forced":                                                              {"The door was forced", "门被强行打开", "門被強行打開", "La porte a été forcée", "Die Tür wurde aufgebrochen", "La puerta fue forzada"},
	"note.item sensor cleared while the door was locked":                       {"The sensor no longer sees anything although the door stayed locked", "门一直锁着，但传感器检测到物品消失", "門一直鎖著，但感應器偵測到物品消失", "Le capteur ne voit plus rien alors que la porte est restée verrouillée", "Der Sensor sieht nichts mehr, obwohl die Tür verriegelt blieb", "El sensor ya no ve nada aunque la puerta siguió cerrada"},
	"note.open after its opening":                                              {"The door stands open after its opening had ended", "开门结束后门仍开着", "開門結束後門仍開著", "La porte est restée ouverte après la fin de son ouverture", "Die Tür steht offen, nachdem ihre Öffnung beendet war", "La puerta sigue abierta después de terminar su apertura"},
	"note.open at the end of the session":                                      {"The door was still open at the end", "结束时门仍开着", "結束時門仍開著", "La porte était encore ouverte à la fin", "Die Tür stand am Ende noch offen", "La puerta seguía abierta al final"},
	"note.cancelled with something inside":                                     {"Cancelled, with something inside", "已取消，但里面有物品", "已取消，但裡面有物品", "Annulé, avec quelque chose à l’intérieur", "Abgebrochen, und etwas liegt darin", "Cancelado, con algo dentro"},
	"note.no door report":                                                      {"The door gave no report", "门没有任何报告", "門沒有任何回報", "La porte n’a rien signalé", "Die Tür hat nichts gemeldet", "La puerta no comunicó nada"},
	"note.the door was not opened":                                             {"The door was not opened", "门未打开", "門未打開", "La porte n’a pas été ouverte", "Die Tür wurde nicht geöffnet", "La puerta no se abrió"},
	"note.something seen where nothing was confirmed":                          {"Something is seen where nothing was confirmed", "未确认的格口中检测到物品", "未確認的格口中偵測到物品", "Quelque chose est vu là où rien n’a été confirmé", "Wo nichts bestätigt wurde, wird etwas gesehen", "Se ve algo donde no se confirmó nada"},
	"note.nothing seen inside":                                                 {"Nothing is seen inside", "里面未检测到物品", "裡面未偵測到物品", "Rien n’est vu à l’intérieur", "Darin wird nichts gesehen", "No se ve nada dentro"},
	"note.something seen inside after a loss of memory":                        {"Something is seen inside after the cabinet lost its memory", "柜机丢失数据后检测到物品", "櫃機遺失資料後偵測到物品", "Quelque chose est vu à l’intérieur après une perte de mémoire", "Nach einem Verlust des Speichers wird darin etwas gesehen", "Se ve algo dentro tras perder la memoria"},
	"note.deposited before the compartment was cleared, and reported after it": {"Deposited before the compartment was cleared, reported only afterwards", "在格口清空前投递，之后才上报", "在格口清空前投遞，之後才回報", "Déposé avant que le casier soit vidé, signalé après", "Vor dem Leeren des Fachs eingelegt, erst danach gemeldet", "Depositado antes de vaciar el compartimento, comunicado después"},
	"note.the package was collected":                                           {"The package was collected", "包裹已被取走", "包裹已被取走", "Le colis a été retiré", "Das Paket wurde abgeholt", "El paquete fue recogido"},
	"note.the package was taken out":                                           {"The package was taken out", "包裹已被取出", "包裹已被取出", "Le colis a été enlevé", "Das Paket wurde entnommen", "El paquete fue sacado"},
	"note.not collected in time":                                               {"Not collected in time", "逾期未取", "逾期未取", "Non retiré à temps", "Nicht rechtzeitig abgeholt", "No recogido a tiempo"},
	"note.the cabinet settled it differently afterwards":                       {"The cabinet recorded something else afterwards", "柜机之后记录的结果不同", "櫃機之後記錄的結果不同", "La consigne a enregistré autre chose ensuite", "Der Schrank hat danach etwas anderes festgehalten", "La taquilla registró otra cosa después"},
	"note." + endedNote:                                                        {"The cabinet ended it: %s", "柜机已结束：%s", "櫃機已結束：%s", "La consigne l’a terminé : %s", "Der Schrank hat es beendet: %s", "La taquilla lo terminó: %s"},
	"note.deposited after the delivery had been given up":                      {"Deposited after the delivery had been given up", "投递被放弃后才放入", "投遞被放棄後才放入", "Déposé après l’abandon de la livraison", "Eingelegt, nachdem die Lieferung aufgegeben war", "Depositado tras abandonarse la entrega"},
	"note.deposited after the delivery had been reported as failed":            {"Deposited after the delivery had been reported as failed", "报告投递失败后才放入", "回報投遞失敗後才放入", "Déposé après que la livraison a été déclarée échouée", "Eingelegt, nachdem die Lieferung als gescheitert gemeldet war", "Depositado tras comunicarse el fallo de la entrega"},
	"note.deposited behind a door that had been reported as not opened":        {"Deposited behind a door that had been reported as not opened", "放入了被报告为未打开的门内", "放入了被回報為未打開的門內", "Déposé derrière une porte déclarée non ouverte", "Hinter einer Tür eingelegt, die als nicht geöffnet gemeldet war", "Depositado tras una puerta comunicada como no abierta"},
	"note.collected once more, by another opening":                             {"Collected once more, by another opening", "被另一次开门再次取出", "被另一次開門再次取出", "Retiré une fois de plus, par une autre ouverture", "Noch einmal abgeholt, bei einer anderen Öffnung", "Recogido otra vez, en otra apertura"},
	"note.collected after it had been removed":                                 {"Collected after staff had removed it", "工作人员取出后又被取走", "工作人員取出後又被取走", "Retiré après avoir été enlevé par le personnel", "Abgeholt, nachdem Personal es entnommen hatte", "Recogido después de que el personal lo retirara"},
	"note.the cabinet lost its store during the opening":                       {"The cabinet lost its memory during the opening", "柜机在开门期间丢失数据", "櫃機在開門期間遺失資料", "La consigne a perdu sa mémoire pendant l’ouverture", "Der Schrank verlor während der Öffnung seinen Speicher", "La taquilla perdió la memoria durante la apertura"},
	"note.the cabinet was reported stolen":                                     {"The cabinet was reported as stolen", "柜机被报失窃", "櫃機被回報失竊", "La consigne a été déclarée volée", "Der Schrank wurde als gestohlen gemeldet", "La taquilla fue declarada robada"},
	"note.the cabinet was retired with it inside":                              {"The cabinet was retired with it inside", "柜机停用时里面仍有物品", "櫃機停用時裡面仍有物品", "La consigne a été retirée avec l’objet dedans", "Der Schrank wurde mit dem Inhalt außer Betrieb genommen", "La taquilla se retiró con él dentro"},
}
