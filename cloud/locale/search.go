package locale

// searchWords are what the page of the search says.
var searchWords = map[string]texts{
	"search.title": {"Search", "搜索", "搜尋", "Recherche", "Suche", "Buscar"},
	"search.for":   {"Results for “%s”", "“%s”的结果", "「%s」的結果", "Résultats pour « %s »", "Treffer für „%s“", "Resultados de «%s»"},
	"search.exact": {"Exact match", "完全匹配", "完全相符", "Correspondance exacte", "Genauer Treffer", "Coincidencia exacta"},
	"search.more":  {"Show more results", "显示更多结果", "顯示更多結果", "Afficher plus de résultats", "Mehr Treffer anzeigen", "Mostrar más resultados"},
	"search.none":  {"Nothing that you may see is called “%s”. Check the number, or search for its beginning.", "在您可查看的范围内没有“%s”。请核对号码，或仅输入开头部分。", "在您可檢視的範圍內沒有「%s」。請核對號碼，或僅輸入開頭部分。", "Rien de ce que vous pouvez voir ne s’appelle « %s ». Vérifiez le numéro ou cherchez son début.", "Nichts, was Sie sehen dürfen, heißt „%s“. Prüfen Sie die Nummer oder suchen Sie nach ihrem Anfang.", "Nada de lo que puede ver se llama «%s». Compruebe el número o busque su comienzo."},
	"search.how":   {"Type at least two characters of a number, reference, name, telephone number, email or code.", "请输入号码、参考号、姓名、电话、邮箱或编码中的至少两个字符。", "請輸入號碼、參考號、姓名、電話、電子郵件或代碼中的至少兩個字元。", "Saisissez au moins deux caractères d’un numéro, d’une référence, d’un nom, d’un téléphone, d’un e-mail ou d’un code.", "Geben Sie mindestens zwei Zeichen einer Nummer, Referenz, eines Namens, einer Telefonnummer, E-Mail oder eines Codes ein.", "Escriba al menos dos caracteres de un número, referencia, nombre, teléfono, correo o código."},
}
