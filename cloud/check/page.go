package check

// Page is the part of a list that a caller asks for. Inputs of lists embed it.
type Page struct {
	Page    *int `query:"page" json:"page" default:"1" min:"1" max:"10000000" doc:"From 1"`
	PerPage *int `query:"per_page" json:"per_page" default:"20" min:"1" max:"200" doc:"Rows of a page, 1 to 200"`
}

// Window is the page's number and size, and how many rows come before it. What was
// not given is the first page of 20.
func (p Page) Window() (page, perPage, offset int) {
	page, perPage = 1, 20
	if p.Page != nil {
		page = *p.Page
	}
	if p.PerPage != nil {
		perPage = *p.PerPage
	}
	return page, perPage, (page - 1) * perPage
}
