package store

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ruledFrom is the number of the first migration that the rule of migrations holds for.
const ruledFrom = 270

var (
	comments  = regexp.MustCompile(`(?m)--.*$`)
	createsIn = regexp.MustCompile(`(?i)^CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)
	indexOn   = regexp.MustCompile(`(?i)^CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?(?:IF NOT EXISTS )?(\w+) ON (\w+)`)
	dropIndex = regexp.MustCompile(`(?i)^DROP INDEX (CONCURRENTLY )?(?:IF EXISTS )?(\w+)$`)
	addColumn = regexp.MustCompile(`(?i)^ALTER TABLE (\w+) ADD COLUMN (\w+) (.*)$`)
	alters    = regexp.MustCompile(`(?i)^ALTER TABLE (\w+) (.*)$`)
	writes    = regexp.MustCompile(`(?i)^(?:UPDATE|DELETE FROM|INSERT INTO) (\w+)`)
	takesAway = regexp.MustCompile(`(?i)^(DROP TABLE|ALTER TABLE \w+ (DROP|RENAME))\b`)
)

// migrationFaults lists where a migration breaks the rule of CONTRIBUTING.md: it changes
// tables while programs of the release before write to them.
func migrationFaults(m migration, text string) (out []string) {
	bad := func(what, statement string) { out = append(out, what+": "+statement) }
	if m.fill != "" {
		switch f := m.fill; {
		case m.oldest == 0:
			bad("a step that fills needs -- oldest: programs that do not write the new column would add rows behind it", f)
		case !strings.Contains(f, "$1") || !strings.Contains(f, "LIMIT $2") || !strings.Contains(f, "RETURNING") || strings.Contains(f, ";"):
			bad("a step that fills is one statement with $1, LIMIT $2 and RETURNING", f)
		}
		return out
	}
	if m.oldest >= m.number {
		bad("the oldest program is one that does not know this migration", m.name)
	}
	made, dropped := map[string]bool{}, map[string]bool{}
	for statement := range strings.SplitSeq(pgTokens.Replace(comments.ReplaceAllString(text, "")), ";") {
		q := strings.Join(strings.Fields(statement), " ")
		if q == "" {
			continue
		}
		found := indexOn.FindStringSubmatch(q)
		drop := dropIndex.FindStringSubmatch(q)
		if m.beside && found == nil && drop == nil {
			bad("a migration without a transaction makes and drops indexes alone", q)
		}
		switch {
		case found != nil && made[found[3]]: // it is empty
		case found != nil:
			if found[1] == "" || !m.beside {
				bad("an index of a table that is there stops its writers: use @beside and NO TRANSACTION", q)
			} else if !dropped[found[2]] {
				bad("an index that was interrupted is there and not valid: drop it first", q)
			}
		case drop != nil:
			if drop[1] == "" {
				bad("an index is dropped @beside its writers", q)
			}
			dropped[drop[2]] = true
		case createsIn.MatchString(q):
			made[createsIn.FindStringSubmatch(q)[1]] = true
		case takesAway.MatchString(q):
			if m.oldest == 0 {
				bad("programs that use it may still run: say by -- oldest which do not", q)
			}
		case addColumn.MatchString(q):
			x := addColumn.FindStringSubmatch(q)
			u := strings.ToUpper(x[3])
			if made[x[1]] {
				break
			}
			if strings.Contains(u, "NOT NULL") && !strings.Contains(u, "DEFAULT") {
				bad("rows that are there, and older programs, have no value", q)
			}
			for _, w := range []string{"UNIQUE", "PRIMARY KEY", "REFERENCES", "IDENTITY", "GENERATED", "CHECK", "(", "RANDOM", "CURRENT_"} {
				if strings.Contains(u, w) {
					bad("a new column with "+w+" reads or writes the whole table", q)
				}
			}
		case alters.MatchString(q):
			if !made[alters.FindStringSubmatch(q)[1]] {
				bad("a change of this kind locks or writes the whole table", q)
			}
		case writes.MatchString(q):
			if !made[writes.FindStringSubmatch(q)[1]] {
				bad("rows are filled in by a migration with -- fill", q)
			}
		default:
			bad("the rule does not know this statement", q)
		}
	}
	return out
}

func ruleOf(t *testing.T, text string) []string {
	t.Helper()
	files := map[string]string{"00999_x.sql": text}
	m := migration{name: "00999_x.sql", number: 999, beside: besideLine.MatchString(text)}
	if found := oldestLine.FindStringSubmatch(text); found != nil {
		m.oldest = 998
	}
	if at := fillLine.FindStringIndex(text); at != nil {
		m.fill = strings.TrimSpace(text[at[1]:])
	}
	return migrationFaults(m, files[m.name])
}

// Migrations let the release before go on: tables are expanded, filled in steps, and
// contracted by a later release.
func TestMigrationsLetWritersGoOn(t *testing.T) {
	t.Parallel()
	all, err := readMigrations(migrations)
	require.NoError(t, err)
	ruled := 0
	for _, m := range all {
		if m.number < ruledFrom {
			continue
		}
		ruled++
		text, err := fs.ReadFile(migrations, m.name)
		require.NoError(t, err)
		require.Empty(t, migrationFaults(m, string(text)), m.name)
	}
	require.NotZero(t, ruled)
	for _, m := range later {
		require.Empty(t, ruleOf(t, m.text), m.name)
	}
	for _, text := range []string{
		"-- +goose Up\nCREATE INDEX a ON orders (id);",
		"-- +goose Up\nCREATE UNIQUE INDEX CONCURRENTLY a ON orders (id);",
		"-- +goose NO TRANSACTION\n-- +goose Up\nCREATE INDEX @beside a ON orders (id);",
		"-- +goose NO TRANSACTION\n-- +goose Up\nDROP INDEX @beside IF EXISTS a;\nCREATE INDEX a ON orders (id);",
		"-- +goose NO TRANSACTION\n-- +goose Up\nALTER TABLE orders ADD COLUMN a @int;",
		"-- +goose Up\nDROP INDEX a;",
		"-- +goose Up\nALTER TABLE orders ADD COLUMN a @int NOT NULL;",
		"-- +goose Up\nALTER TABLE orders ADD COLUMN a @int UNIQUE;",
		"-- +goose Up\nALTER TABLE orders ADD COLUMN a @int NOT NULL DEFAULT nextval('x');",
		"-- +goose Up\nALTER TABLE orders ALTER COLUMN a TYPE TEXT;",
		"-- +goose Up\nALTER TABLE orders ALTER COLUMN a SET NOT NULL;",
		"-- +goose Up\nALTER TABLE orders ADD CONSTRAINT c CHECK (a > 0);",
		"-- +goose Up\nALTER TABLE orders DROP COLUMN a;",
		"-- +goose Up\nALTER TABLE orders RENAME TO b;",
		"-- +goose Up\nDROP TABLE orders;",
		"-- +goose Up\nUPDATE orders SET a = 1;",
		"-- +goose Up\nINSERT INTO orders (id) SELECT id FROM x;",
		"-- +goose Up\nDELETE FROM orders;",
		"-- +goose Up\nLOCK TABLE orders;",
		"-- fill\nUPDATE orders SET a = 1 WHERE id > $1 AND id < $1 LIMIT $2 RETURNING id",
		"-- oldest: 998\n-- fill\nUPDATE orders SET a = 1",
	} {
		require.NotEmpty(t, ruleOf(t, text), text)
	}
}
