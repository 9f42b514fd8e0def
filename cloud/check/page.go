package check

// Paging is the part of a list that a caller asks for. Inputs of lists embed it.
type Paging struct {
	Page    *int `query:"page" json:"page" default:"1" min:"1" max:"10000000" doc:"From 1"`
	PerPage *int `query:"per_page" json:"per_page" default:"20" min:"1" max:"200" doc:"Rows of a page"`
}

// LongPaging is Paging of lists that have 50 rows a page.
type LongPaging struct {
	Page    *int `query:"page" json:"page" default:"1" min:"1" max:"10000000" doc:"From 1"`
	PerPage *int `query:"per_page" json:"per_page" default:"50" min:"1" max:"200" doc:"Rows of a page"`
}

// Window is the page's number and size, and how many rows come before it. What was
// not given is the first page of 20 rows.
func (p Paging) Window() (page, perPage, offset int) { return window(p.Page, p.PerPage, 20) }

// Window is that of Paging, with 50 rows where no number was given.
func (p LongPaging) Window() (page, perPage, offset int) { return window(p.Page, p.PerPage, 50) }

func window(page, perPage *int, rows int) (number, size, offset int) {
	number, size = 1, rows
	if page != nil {
		number = *page
	}
	if perPage != nil {
		size = *perPage
	}
	return number, size, (number - 1) * size
}
