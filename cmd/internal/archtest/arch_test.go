// Package archtest keeps the arrows between packages: imports point from
// programs to assemblies, adapters, rules, nouns and the protocol, never back,
// and the two sides meet in the protocol only.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/postern-io/postern/"

// allowed lists what each package may import of this module. A name ending in
// "/..." stands for everything below it.
var allowed = map[string][]string{
	"protocol/otep":      {"internal/spelling", "protocol/gs1"},
	"protocol/wire":      {},
	"protocol/topic":     {},
	"protocol/lockbus":   {},
	"protocol/wiring":    {"protocol/lockbus"},
	"protocol/signature": {},
	"protocol/signed":    {"protocol/wire"},
	"protocol/diagnosis": {},
	"protocol/release":   {"protocol/signed"},
	"protocol/passcode":  {"protocol/topic", "protocol/wire"},
	"protocol/gs1":       {},

	"edge":         {"protocol/wire"},
	"edge/locker":  {"edge", "protocol/diagnosis", "protocol/wire"},
	"edge/board":   {"edge", "protocol/lockbus", "protocol/wire"},
	"edge/buffer":  {"protocol/wire", "internal/lockfile"},
	"edge/uplink":  {"edge/buffer", "internal/loopback", "protocol/signed", "protocol/topic", "protocol/wire"},
	"edge/access":  {"edge", "edge/locker", "protocol/passcode", "protocol/signed", "protocol/wire"},
	"edge/scanner": {"edge/board", "edge/locker", "protocol/gs1", "protocol/otep", "protocol/passcode", "protocol/signed", "protocol/wire"},
	"edge/kiosk":   {"edge", "edge/access", "edge/locker", "edge/scanner", "internal/localpage", "protocol/otep", "protocol/passcode", "protocol/wire"},
	"edge/origin":  {"protocol/diagnosis"},
	"edge/update":  {"edge/origin", "internal/lockfile", "protocol/release", "protocol/signed", "protocol/wire"},
	"edge/agent":   {"edge", "edge/...", "internal/bundle", "internal/wholefile", "protocol/..."},

	"firmware-sim/board": {"protocol/lockbus"},
	"firmware-sim/page":  {"firmware-sim/board", "internal/localpage"},

	"cloud":                    {"protocol/otep", "protocol/wire"},
	"cloud/seal":               {},
	"cloud/check":              {"cloud"},
	"cloud/auth":               {"cloud", "cloud/limit"},
	"cloud/limit":              {},
	"cloud/object":             {"cloud"},
	"cloud/artefact":           {"cloud", "cloud/object", "protocol/release", "protocol/signed", "protocol/wire"},
	"cloud/backup":             {"cloud", "cloud/object", "cloud/store"},
	"cloud/picture":            {},
	"cloud/fetch":              {},
	"cloud/app":                {"cloud", "cloud/check"},
	"cloud/search":             {"cloud", "cloud/check"},
	"cloud/report":             {"cloud", "cloud/check"},
	"cloud/platform":           {"cloud", "cloud/auth", "cloud/check"},
	"cloud/collection":         {"cloud", "cloud/check"},
	"cloud/account":            {"cloud", "cloud/auth", "cloud/check", "cloud/collection", "protocol/otep"},
	"cloud/locale":             {"cloud", "protocol/otep"},
	"cloud/device":             {"cloud", "protocol/passcode", "protocol/signed", "protocol/topic", "protocol/wire"},
	"cloud/locker":             {"cloud", "cloud/check", "cloud/collection", "protocol/diagnosis", "protocol/gs1", "protocol/otep", "protocol/passcode", "protocol/release", "protocol/signed", "protocol/wire"},
	"cloud/hosted":             {"cloud", "cloud/locker", "edge/locker", "protocol/wire"},
	"cloud/httpdevice":         {"cloud", "cloud/catalog", "cloud/check", "cloud/hosted", "cloud/limit", "cloud/locker", "cloud/peer", "edge", "edge/locker", "protocol/otep", "protocol/passcode", "protocol/signed", "protocol/wire"},
	"cloud/mock":               {"cloud", "cloud/check", "cloud/hosted", "cloud/locker", "cloud/setup", "edge", "edge/locker", "protocol/passcode", "protocol/wire", "protocol/wiring"},
	"cloud/notice":             {"cloud", "cloud/locale"},
	"cloud/cabinetprofile":     {"cloud", "cloud/check", "cloud/collection", "protocol/wire"},
	"cloud/distribution":       {"cloud", "cloud/check", "cloud/collection", "cloud/locale"},
	"cloud/order":              {"cloud", "cloud/check", "cloud/locale", "cloud/notice", "cloud/order/pricing", "cloud/timeline", "protocol/otep"},
	"cloud/order/interception": {"cloud", "cloud/check", "cloud/order"},
	"cloud/order/thirdparty":   {"cloud", "cloud/check", "cloud/order", "protocol/otep"},
	"cloud/order/pricing":      {"cloud"},
	"cloud/order/contractor":   {"cloud", "cloud/check", "cloud/locale", "cloud/order"},
	"cloud/order/proof":        {"cloud", "cloud/check", "cloud/order"},
	"cloud/order/recall":       {"cloud", "cloud/check", "cloud/order"},
	"cloud/order/scan":         {"cloud", "cloud/order", "cloud/order/interception"},
	"cloud/route":              {"cloud", "cloud/check", "cloud/locale", "cloud/notice", "cloud/order", "protocol/otep"},
	"cloud/projection":         {"protocol/gs1", "protocol/otep"},
	"cloud/docs/otep":          {"cloud/locale", "cloud/projection", "protocol/otep"},
	"cloud/timeline":           {"cloud", "protocol/otep"},
	"cloud/tracking":           {"cloud", "cloud/check", "cloud/collection", "cloud/limit", "cloud/locale", "cloud/projection", "cloud/timeline", "protocol/otep"},
	"cloud/span":               {"cloud"},
	"cloud/trace":              {"cloud", "cloud/projection", "protocol/otep"},
	"cloud/webhook":            {"cloud", "cloud/check", "cloud/locale", "protocol/otep", "protocol/signature"},
	"cloud/webhook/sender":     {"cloud", "cloud/fetch", "cloud/span", "protocol/cloudevent", "protocol/signature"},
	"cloud/mqttbroker":         {"cloud/limit", "protocol/topic"},
	"cloud/live":               {"cloud", "cloud/auth", "cloud/mqttbroker", "protocol/otep"},
	"cloud/hook":               {"protocol/signature"},
	"cloud/push":               {"cloud", "cloud/hook"},
	"cloud/notification":       {"cloud", "cloud/check", "cloud/hook", "cloud/locale"},
	"cloud/node":               {"cloud"},
	"cloud/oidc":               {"cloud", "cloud/auth"},
	"cloud/store":              {"cloud", "cloud/seal", "cloud/span", "cloud/timeline", "protocol/otep", "protocol/wire", "internal/lockfile"},
	"cloud/catalog":            {"cloud", "cloud/auth", "cloud/check", "cloud/limit", "cloud/span", "internal/spelling"},
	"cloud/api": {
		"cloud",
		"cloud/account",
		"cloud/app",
		"cloud/approval",
		"cloud/auth",
		"cloud/cabinetprofile",
		"cloud/catalog",
		"cloud/chat",
		"cloud/collection",
		"cloud/distribution",
		"cloud/job",
		"cloud/live",
		"cloud/locker",
		"cloud/mock",
		"cloud/notification",
		"cloud/object",
		"cloud/order",
		"cloud/order/interception",
		"cloud/order/thirdparty",
		"cloud/order/contractor",
		"cloud/order/proof",
		"cloud/order/recall",
		"cloud/order/scan",
		"cloud/platform",
		"cloud/push",
		"cloud/webhook",
		"cloud/report",
		"cloud/route",
		"cloud/search",
		"cloud/setup",
		"cloud/tracking",
	},
	"cloud/job":            {"cloud", "cloud/catalog", "cloud/check"},
	"cloud/mcp":            {"cloud/locale", "cloud/peer", "cloud/seal", "internal/loopback"},
	"cloud/tool":           {"cloud", "cloud/catalog", "cloud/limit", "cloud/locale", "cloud/mcp"},
	"cloud/docs/agent":     {"cloud", "cloud/catalog", "cloud/mcp"},
	"cloud/docs/developer": {"cloud", "cloud/catalog", "cloud/docs/otep", "cloud/locale", "protocol/otep", "protocol/signature"},
	"cloud/approval":       {"cloud", "cloud/check"},
	"cloud/chat":           {"cloud", "cloud/check", "cloud/limit", "cloud/picture"},
	"cloud/oauth":          {"cloud", "cloud/auth", "cloud/catalog", "cloud/limit", "cloud/mcp"},
	"cloud/graphql":        {"cloud", "cloud/catalog", "cloud/check", "cloud/locale"},
	"cloud/peer":           {"internal/loopback"},
	"cloud/admin":          {"cloud/peer", "internal/loopback"},
	"cloud/setup":          {"cloud", "cloud/auth", "cloud/check", "protocol/passcode", "protocol/topic", "protocol/wire", "protocol/wiring"},
	"cloud/rest":           {"cloud", "cloud/catalog", "cloud/check", "cloud/limit", "cloud/locale", "cloud/peer", "cloud/rest/events", "cloud/span", "protocol/otep"},
	"cloud/rest/events":    {"cloud", "cloud/catalog"},
	"cloud/page/chart":     {},
	"cloud/page/stream":    {"cloud"},
	"cloud/page":           {"cloud", "cloud/docs/code", "cloud/page/chart", "cloud/account", "cloud/docs/asyncapi", "cloud/catalog", "cloud/chat", "cloud/docs/webhook", "cloud/approval", "cloud/limit", "cloud/auth", "cloud/docs/otep", "cloud/job", "cloud/locale", "cloud/locker", "cloud/oauth", "cloud/oidc", "cloud/page/stream", "cloud/peer", "cloud/report", "cloud/seal", "cloud/search", "cloud/webhook", "cloud/work", "cloud/setup", "cloud/tracking", "protocol/diagnosis", "protocol/otep", "protocol/wire", "protocol/wiring", "internal/shell"},
	"cloud/server":         {"cloud", "cloud/...", "internal/wholefile", "protocol/..."},

	"cloud/docs/asyncapi":                {"cloud", "cloud/catalog", "protocol/signature"},
	"cloud/docs/webhook":                 {"cloud"},
	"cloud/docs/webhook/snippets/verify": {},
	"protocol/cloudevent":                {},
	"cloud/docs/code":                    {},
	"github.com/postern-io/postern":      {}, // the changelog
	"internal/bundle":                    {},
	"internal/localpage":                 {"internal/loopback"},
	"internal/lockfile":                  {},
	"internal/loopback":                  {},
	"internal/ring":                      {},
	"internal/shell":                     {},
	"internal/spelling":                  {},
	"internal/verdict":                   {},
	"internal/wholefile":                 {},
}

type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

// family is what the rules of a simple family import. Such a package needs no row in
// the table, and cloud/api declares its operations.
var family = []string{"cloud", "cloud/check", "cloud/collection"}

func isFamily(p listed) bool {
	return strings.HasPrefix(p.ImportPath, module+"cloud/") && slices.Contains(p.Imports, module+"cloud/collection")
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	all := packages(t)
	var families []string
	for _, p := range all {
		if name := strings.TrimPrefix(p.ImportPath, module); allowed[name] == nil && isFamily(p) {
			families = append(families, name)
		}
	}
	for _, p := range all {
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(name, "cmd/") || strings.HasSuffix(name, "test") {
			continue
		}
		may, ok := allowed[name]
		if !ok && isFamily(p) {
			may, ok = family, true
		}
		require.True(t, ok, "%s has no row in the table of arrows: add it with what it may import", name)
		if name == "cloud/api" {
			may = append(slices.Clone(may), families...)
		}
		for _, i := range p.Imports {
			i, ours := strings.CutPrefix(i, module)
			if !ours {
				continue
			}
			require.True(t, slices.ContainsFunc(may, func(m string) bool {
				prefix, all := strings.CutSuffix(m, "...")
				return m == i || all && strings.HasPrefix(i, prefix)
			}), "%s must not import %s", name, i)
		}
	}
}

// docs/architecture.md names every package of the programs, so that a reader finds the
// room of each file.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/architecture.md")
	require.NoError(t, err)
	seen := 0
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !regexp.MustCompile(`^(cloud|edge|protocol|firmware-sim)/`).MatchString(name) || strings.HasSuffix(name, "test") || strings.Contains(name, "/snippets/") {
			continue
		}
		seen++
		if !regexp.MustCompile("`(" + regexp.QuoteMeta(name) + ")`").Match(raw) {
			t.Errorf("docs/architecture.md does not say what `%s` is for", name)
		}
	}
	require.Greater(t, seen, 70)
}

// What only tests use stays out of the programs.
func TestProgramsHoldNoTestTools(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", module+"cmd/cloud", module+"cmd/edge", module+"cmd/firmware-sim").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), module+"cloud/rest\n")
	for _, tool := range []string{"testing\n", "github.com/stretchr/", "github.com/modelcontextprotocol/", "pgregory.net/rapid", "github.com/cloudevents/", "github.com/standard-webhooks/", "github.com/emersion/", "github.com/descope/", "github.com/zitadel/", "github.com/rclone/"} {
		require.NotContains(t, string(out), tool)
	}
}

// startsGoroutine finds where a file starts one.
var startsGoroutine = regexp.MustCompile(`(?m)^\s*go (func|[a-zA-Z_.]+)\(|\.Go\(func|^\s*(\w+\.)?(wg|run)\.Go\(`)

// unraced are packages that start goroutines and are not in the list of `make
// race`: programs and assemblies, which are tested through what they assemble, and
// the store, whose writer runs under every package that is in the list while its
// own tests make the tables of SQLite anew each time, minutes under the detector.
// make full-race has them all.
var unraced = []string{"cloud/server", "cloud/store", "cmd/"}

// What starts goroutines of its own is tested under the race detector.
func TestRaceListIsWhole(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	list := regexp.MustCompile(`(?s)\nRACE := (.*?[^\\])\n`).FindSubmatch(makefile)
	require.NotNil(t, list)
	raced := strings.Fields(strings.ReplaceAll(string(list[1]), "\\\n", " "))
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasSuffix(name, "test") || slices.ContainsFunc(unraced, func(u string) bool { return strings.HasPrefix(name, u) }) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, name, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if !strings.HasSuffix(file, "_test.go") && startsGoroutine.Match(text) {
				require.Contains(t, raced, "./"+name, "%s starts a goroutine: add its package to RACE in the Makefile", file)
			}
		}
	}
}
