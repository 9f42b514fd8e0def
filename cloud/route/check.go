package route

import "github.com/postern-io/postern/cloud/check"

// RoutePage asks for a part of a list of routes.
type RoutePage struct {
	check.Keyset
	Sort string `query:"sort" json:"sort" enum:"-id,id,-date,date,-name,name" doc:"-id when absent"`
}
