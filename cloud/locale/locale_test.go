package locale

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

func TestEveryMessageHasEveryLanguage(t *testing.T) {
	t.Parallel()
	check := func(table, key string, m texts) {
		for i, s := range m {
			require.NotEmpty(t, strings.TrimSpace(s), "%s %q lacks %s", table, key, languages[i])
			require.Equal(t, strings.Count(m[0], "%s"), strings.Count(s, "%s"), "%s %q: blanks in %s", table, key, languages[i])
		}
	}
	for k, m := range errors {
		check("errors", k, m)
	}
	for k, m := range fields {
		check("fields", k, m)
		require.Equal(t, k, m[0], "the English text is the key")
	}
	for k, m := range words {
		check("words", k, m)
	}
	for _, table := range []map[otep.Code]texts{statuses, descriptions, headlines, next} {
		for k, m := range table {
			check("tracking", string(k), m)
		}
	}
	for _, s := range otep.Vocabulary() {
		require.Contains(t, statuses, s.Code, "a status has a label")
		require.Contains(t, next, s.Code, "a status says what comes next")
	}
}

func TestLanguagesAreReallyDifferent(t *testing.T) {
	t.Parallel()
	for k, m := range errors {
		for i := 1; i < len(m); i++ {
			require.NotEqual(t, m[0], m[i], "%s is not translated into %s", k, languages[i])
		}
	}
}

// Every public code that the core's sources name has a message of its own, and
// so has every sentence about a field.
func TestEveryCodeOfTheSourcesHasAMessage(t *testing.T) {
	t.Parallel()
	codes := regexp.MustCompile(`cloud\.E\([^,()]+, "([A-Z_0-9]+)"|\bKind: +cloud\.\w+, Code: +"([A-Z_0-9]+)"`)
	named := regexp.MustCompile(`\bcode[A-Z]\w* += "([A-Z_]+)"`) // constants
	sentences := regexp.MustCompile(`\bf\.[aA]dd\([^"]*(?:"[^"]*"[^"]*)?, "((?:[A-Z][^"\\]|\\")(?:[^"\\]|\\")*)"`)
	seen := map[string]bool{}
	require.NoError(t, fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := fs.ReadFile(os.DirFS(".."), path)
		if err != nil {
			return err
		}
		for _, m := range codes.FindAllStringSubmatch(string(src), -1) {
			code := m[1] + m[2]
			seen[code] = true
			require.True(t, HasError(code), "%s names %s, which has no message", path, code)
		}
		for _, m := range named.FindAllStringSubmatch(string(src), -1) {
			seen[m[1]] = true
			require.True(t, HasError(m[1]), "%s names %s, which has no message", path, m[1])
		}
		for _, m := range sentences.FindAllStringSubmatch(string(src), -1) {
			if !strings.Contains(m[1], "%") {
				require.Contains(t, fields, strings.ReplaceAll(m[1], `\"`, `"`), path)
			}
		}
		return nil
	}))
	for _, c := range []string{"NO_COMPARTMENT", "DEVICE_TIMEOUT", "TOKEN_INVALID", "TRACKING_NOT_FOUND", "RATE_LIMITED"} {
		require.True(t, seen[c], "the search finds %s", c)
	}
}

func TestNegotiate(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": English, "en-CA": English, "de": German, "de-AT,en;q=0.8": German, "fr-CA": French, "es-MX": Spanish,
		"zh": SimplifiedChinese, "zh-CN": SimplifiedChinese, "zh-SG": SimplifiedChinese, "zh-Hans": SimplifiedChinese,
		"zh-TW": TraditionalChinese, "zh-HK": TraditionalChinese, "zh-MO": TraditionalChinese, "zh-Hant-TW": TraditionalChinese,
		"ja": English, "ja,fr;q=0.5": French, "en;q=0.1,de;q=0.9": German, "*": English, "fr;q=0,de": German,
		";;;,,,": English, "de;q=banana": English, strings.Repeat("de,", 400): English, "\x00\xff": English,
	} {
		require.Equal(t, want, Negotiate(header), "%.40q", header)
	}
}

func FuzzNegotiate(f *testing.F) {
	f.Add("zh-TW,zh;q=0.9,en;q=0.1")
	f.Add("de;q=1.0000000000001,*")
	f.Fuzz(func(t *testing.T, header string) {
		require.True(t, Known(Negotiate(header)))
	})
}

func TestUnknownKeysAreShownNotInvented(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Held at border", Status(German, "x-held_at_border"))
	require.Equal(t, "Zugestellt", Status(German, otep.Delivered))
	require.Equal(t, "Erfolgreich zugestellt", Description(German, otep.Delivered))
	require.Equal(t, Error(English, "UNKNOWN"), Error("xx", "NEVER_HEARD_OF"))
	require.Equal(t, "no such sentence", Field(French, "no such sentence"))
	require.Equal(t, "a b", Value(French, "door", "a_b"))
	require.Len(t, All(), len(languages))
}

// Words that no page uses only wait to be wrong.
func TestEveryWordIsUsed(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, dir := range []string{"../page", "../page/templates", "../docs/otep", "../order", "../order/contractor", "../app", "../tool", "../notice", "../notification", "../webhook"} {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			if !e.IsDir() {
				b, err := os.ReadFile(dir + "/" + e.Name())
				require.NoError(t, err)
				all.Write(b)
			}
		}
	}
	values := regexp.MustCompile(`^(diagnosis|refusal|channeltest|boardstate|boardfault|rawbit|clock|lane|lock|gap|pickup|door|grid|delivery|outbox|exception|severity|opening|end|phase|limit|term|risk|approval|check|reach|profile|ask|push|chat(?:role|status)|hook(?:next|reason|error|span|setting|done|pause|wait|check|expect|job|kind)|tool\.wrong|tool\.ask)\.`)
	console := regexp.MustCompile(`^(purpose|noun|verb|member|value|area|item|next|order|route|driver|device|rollout|assignment|third_party|interception|invitation|endpoint|business|pass|outcome|exception_status|review_status|device_order|announced_package|job|notice|notification|operation|action|state|scope|story|thing|block|note|quick|errors|happens|work\.live)\.`) // made from the catalogue, or by kinds of work items; their tests look for them
	for key := range words {
		if console.MatchString(key) {
			continue
		}
		if values.MatchString(key) {
			kind, _, _ := strings.Cut(key, ".")
			if sentence, ok := strings.CutPrefix(key, "tool."); ok {
				group, _, _ := strings.Cut(sentence, ".")
				require.Contains(t, all.String(), `"tool.`+group+`."`)
				continue
			}
			if push, ok := strings.CutPrefix(key, "push."); ok {
				require.Contains(t, all.String(), `"`+push+`"`)
				continue
			}
			require.True(t, strings.Contains(all.String(), `.V "`+kind+`"`) || strings.Contains(all.String(), `.V("`+kind+`"`), "no page uses %s", kind)
			continue
		}
		require.True(t, strings.Contains(all.String(), `"`+key+`"`), "no page uses %s", key)
	}
	used := regexp.MustCompile(`\.T "([a-z.]+)"`)
	for _, m := range used.FindAllStringSubmatch(all.String(), -1) {
		require.Contains(t, words, m[1], "a page uses a word that is not there")
	}
}

// What cabinets and the cloud note of exceptions has words.
func TestEveryNoteHasWords(t *testing.T) {
	t.Parallel()
	said := regexp.MustCompile(`(?:raise|loseDeliveries|tellLeftOpen)\(.*"([a-z][^"]*)"(?:\+b\.Reason)?\)|(?:detail|evidence) :?= "([^"]+)"`)
	found := map[string]bool{}
	for _, dir := range []string{"../locker", "../../edge/locker"} {
		files, err := filepath.Glob(dir + "/*.go")
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			b, err := os.ReadFile(name)
			require.NoError(t, err)
			for _, m := range said.FindAllStringSubmatch(string(b), -1) {
				found[m[1]+m[2]] = true
			}
		}
	}
	require.Greater(t, len(found), 15)
	for note := range found {
		require.Contains(t, notes, "note."+note)
	}
	for key := range notes {
		require.Contains(t, found, strings.TrimPrefix(key, "note."), "no source says it")
	}
	for _, reason := range []string{wire.EndDepositUnverified, wire.EndOpenFailed, wire.EndCancelled, wire.EndNotCollected} {
		require.NotContains(t, Note("de", endedNote+reason), "end.", reason)
		require.NotContains(t, Note("de", endedNote+reason), reason)
	}
	require.Equal(t, "my own words", Note("de", "my own words"))
	require.Equal(t, "Darin wird nichts gesehen; Das Paket wurde abgeholt; my own words", Note("de", "nothing seen inside; the package was collected; my own words"))
}

// The words that no message in English has: a subject is a noun, and what is sent
// to an endpoint is an event.
func TestMessagesUseNoRefusedWords(t *testing.T) {
	t.Parallel()
	refused := regexp.MustCompile(`(?i)\b(hears|told|nobody|somebody|whoever)\b`)
	for code, m := range errors {
		require.NotRegexp(t, refused, m[0], code)
	}
}
