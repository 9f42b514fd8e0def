package locale

// kitWords are the words of the page of the design system.
var kitWords = map[string]texts{
	"kit.title":    {"Design kit", "设计组件", "設計元件", "Kit de conception", "Gestaltungsbaukasten", "Kit de diseño"},
	"kit.lead":     {"Every part that the pages are made of, in each of its states. Names and figures are made up.", "页面所用的全部组件及其各种状态。名称与数据均为虚构。", "頁面所用的全部元件及其各種狀態。名稱與數據皆為虛構。", "Chaque élément des pages, dans chacun de ses états. Noms et chiffres sont inventés.", "Jedes Teil der Seiten in jedem seiner Zustände. Namen und Zahlen sind erfunden.", "Cada pieza de las páginas, en cada uno de sus estados. Nombres y cifras son inventados."},
	"kit.buttons":  {"Buttons and menus", "按钮与菜单", "按鈕與選單", "Boutons et menus", "Knöpfe und Menüs", "Botones y menús"},
	"kit.chips":    {"Chips and tabs", "标签与选项卡", "標籤與分頁", "Puces et onglets", "Auswahl und Reiter", "Fichas y pestañas"},
	"kit.pills":    {"States", "状态", "狀態", "États", "Zustände", "Estados"},
	"kit.values":   {"Values", "数值", "數值", "Valeurs", "Werte", "Valores"},
	"kit.notices":  {"Notices", "提示", "提示", "Avis", "Hinweise", "Avisos"},
	"kit.figures":  {"Figures and progress", "数字与进度", "數字與進度", "Chiffres et progression", "Kennzahlen und Fortschritt", "Cifras y progreso"},
	"kit.tables":   {"Tables", "表格", "表格", "Tableaux", "Tabellen", "Tablas"},
	"kit.table":    {"A table", "表格示例", "表格範例", "Un tableau", "Eine Tabelle", "Una tabla"},
	"kit.filters":  {"Filters", "筛选", "篩選", "Filtres", "Filter", "Filtros"},
	"kit.fields":   {"Fields", "字段", "欄位", "Champs", "Felder", "Campos"},
	"kit.todo":     {"Work items", "待办事项", "待辦事項", "Éléments à traiter", "Aufgaben", "Tareas"},
	"kit.story":    {"Timeline", "时间线", "時間軸", "Chronologie", "Verlauf", "Cronología"},
	"kit.charts":   {"Charts", "图表", "圖表", "Graphiques", "Diagramme", "Gráficos"},
	"kit.doors":    {"Doors and cabinets", "柜门与快递柜", "櫃門與智慧櫃", "Portes et consignes", "Türen und Schränke", "Puertas y taquillas"},
	"kit.messages": {"Messages", "消息", "訊息", "Messages", "Nachrichten", "Mensajes"},
	"kit.empty":    {"Empty", "空状态", "空狀態", "Vide", "Leer", "Vacío"},
}
