package api

import (
	_ "embed"
	"encoding/json"
	"sync"

	"github.com/postern-io/postern/cloud/catalog"
)

// recorded are answers that were really given, by operation: the tests record
// them and hold them against what is answered now. Of long lists two rows are
// kept, and tokens and secrets are not those that were given.
//
//go:embed answers.json
var recorded []byte

// answered puts the recorded answers beside their operations.
func answered(rows []catalog.Operation) []catalog.Operation {
	list := readAnswers()
	for i := range rows {
		rows[i].Answered = list[rows[i].Name]
	}
	return rows
}

var readAnswers = sync.OnceValue(func() (list map[string]json.RawMessage) {
	if err := json.Unmarshal(recorded, &list); err != nil {
		panic("api: recorded answers: " + err.Error())
	}
	return list
})
