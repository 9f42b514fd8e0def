package store

import "github.com/postern-io/postern/cloud"

var (
	aliases = newRowTable("alias", cloud.Alias{})

	sqlAliasesByKey = `SELECT ` + aliases.list + ` FROM alias WHERE business_id = $1 AND key = $2 ORDER BY id`
	sqlAliasesOf    = `SELECT ` + aliases.list + ` FROM alias WHERE business_id = $1 AND thing = $2 ORDER BY id`
)

// AliasesByKey implements cloud.AliasView.
func (v containerView) AliasesByKey(b cloud.BusinessID, key string) ([]cloud.Alias, error) {
	return rowsAs[cloud.Alias](v.snapshot, aliases, sqlAliasesByKey, int64(b), key)
}

// AliasesOf implements cloud.AliasView.
func (v containerView) AliasesOf(b cloud.BusinessID, thing string) ([]cloud.Alias, error) {
	return rowsAs[cloud.Alias](v.snapshot, aliases, sqlAliasesOf, int64(b), thing)
}
