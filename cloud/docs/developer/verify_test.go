package developer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

// vector is the published one (webhooks 3.4).
var vector = map[string]string{
	"secret": "0123456789abcdef0123456789abcdef", "timestamp": "1795216320", "webhook_id": "OCR-120045", "delivery_id": "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5e",
	"raw_body":          `{"event_id":"OCR-120045","event":"order.created","test":true}`,
	"signature":         "07ae8811832cecbabf40eaae88c060e2134a472521b7530d7d36fd15ee4ca93d",
	"signature_v2":      "14ce1579095aa2995de8eac3cfc387df444ce8951332a27b896fe7e71ed42dcd",
	"provider":          "SRnSBr6c3NpiCyS3Dxkb2LUvsmwTKNQ6Z4zr9WCUi18=",
	"ohp":               "v1=14ce1579095aa2995de8eac3cfc387df444ce8951332a27b896fe7e71ed42dcd",
	"standard_webhooks": "v1,GI7DWUjQAQalNLd6aNl3sOnaXL49//i96QF3AnISQk0=",
}

// given is a call with the vector for a scheme; more are pairs that win.
func given(scheme string, more ...any) catalog.Given {
	g := catalog.Given{"scheme": scheme, "signature": vector[scheme]}
	for _, name := range []string{"secret", "timestamp", "webhook_id", "delivery_id", "raw_body"} {
		g[name] = vector[name]
	}
	for i := 0; i < len(more); i += 2 {
		if g[more[i].(string)] = more[i+1]; more[i+1] == nil {
			delete(g, more[i].(string))
		}
	}
	return g
}

func checked(t *testing.T, g catalog.Given) signatureCheck {
	t.Helper()
	out, err := verify(cloud.Caller{}, g)
	require.NoError(t, err)
	raw, err := json.Marshal(out)
	require.NoError(t, err)
	if s := g.Text("secret"); len(s) > 4 {
		require.NotContains(t, string(raw), s, "the secret is not told")
	}
	return out.(signatureCheck)
}

// at runs a test at the vector's time, off by some.
func at(t *testing.T, off time.Duration, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(1795216320, 0).Add(off)))
		f(t)
	})
}

func TestPublishedSignatures(t *testing.T) {
	t.Parallel()
	previews := map[string]string{"signature": "", "signature_v2": "1795216320.", "provider": "1795216320\n" + vector["delivery_id"] + "\n", "ohp": "1795216320.", "standard_webhooks": "OCR-120045.1795216320."}
	at(t, 0, func(t *testing.T) {
		for scheme, before := range previews {
			v := checked(t, given(scheme))
			require.Equal(t, []any{true, true, "ok", scheme}, []any{v.Result, v.Valid, v.Reason, v.Scheme}, scheme)
			require.Contains(t, v.Algorithm, "HMAC-SHA256")
			require.Equal(t, before+vector["raw_body"], v.Preview)
			for _, bad := range []catalog.Given{given(scheme, "raw_body", vector["raw_body"]+"\n"), given(scheme, "secret", vector["secret"]+"0")} {
				v := checked(t, bad)
				require.Equal(t, []any{false, "mismatch"}, []any{v.Valid, v.Reason}, scheme)
			}
		}
		for scheme, name := range map[string]string{"signature_v2": "timestamp", "provider": "delivery_id", "ohp": "timestamp", "standard_webhooks": "webhook_id"} {
			other := map[string]string{"timestamp": "1795216321", "delivery_id": "0f2d6c1e", "webhook_id": "OCR-1"}[name]
			require.Equal(t, "mismatch", checked(t, given(scheme, name, other)).Reason, "%s covers %s", scheme, name)
		}
		require.Equal(t, "ok", checked(t, given("signature_v2", "signature", strings.Repeat("0", 64)+","+vector["signature_v2"])).Reason, "one of several")
		long := checked(t, given("signature", "raw_body", strings.Repeat("ä", 1000)))
		require.Equal(t, strings.Repeat("ä", maxPreview)+"…", long.Preview)
		require.Equal(t, "ok", checked(t, given("signature", "timestamp", nil)).Reason, "no time is signed there")
	})
}

// A key may be written with whsec_ in front.
func TestStandardSecrets(t *testing.T) {
	t.Parallel()
	at(t, 0, func(t *testing.T) {
		require.Equal(t, "ok", checked(t, given("standard_webhooks", "secret", "whsec_"+base64.StdEncoding.EncodeToString([]byte(vector["secret"])))).Reason)
		v := checked(t, given("standard_webhooks", "secret", "whsec_not-base64!"))
		require.Equal(t, []any{"missing_input", []string{"secret"}}, []any{v.Reason, v.Missing})
	})
}

// A signature that is right but too old, or too new, is distinguished from a wrong one.
func TestTolerance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		off    time.Duration
		within any
		want   string
	}{
		{300 * time.Second, nil, "ok"}, {301 * time.Second, nil, "stale_timestamp"}, {-300 * time.Second, nil, "ok"}, {-301 * time.Second, nil, "stale_timestamp"},
		{301 * time.Second, json.Number("3600"), "ok"}, {time.Second, json.Number("0"), "stale_timestamp"}, {0, json.Number("0"), "ok"},
	} {
		at(t, c.off, func(t *testing.T) {
			v := checked(t, given("signature_v2", "tolerance_seconds", c.within))
			require.Equal(t, []any{c.want, c.want == "ok"}, []any{v.Reason, v.Valid}, "%+v", c)
			require.Equal(t, "mismatch", checked(t, given("signature_v2", "tolerance_seconds", c.within, "secret", "another")).Reason)
		})
	}
	far := strconv.FormatInt(1<<63-1, 10)
	made := signature.V2(time.Unix(1<<63-1, 0), []byte(vector["raw_body"]), []byte(vector["secret"]))
	require.Equal(t, "stale_timestamp", checked(t, given("signature_v2", "timestamp", far, "signature", made)).Reason)
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scheme  string
		more    []any
		missing []string
	}{
		{"signature_v2", []any{"timestamp", nil}, []string{"timestamp"}},
		{"signature_v2", []any{"timestamp", "2026-11-20T18:12:00Z"}, []string{"timestamp"}},
		{"signature_v2", []any{"timestamp", "-5"}, []string{"timestamp"}},
		{"signature_v2", []any{"timestamp", "01795216320"}, []string{"timestamp"}},
		{"provider", []any{"delivery_id", nil, "timestamp", nil}, []string{"delivery_id", "timestamp"}},
		{"provider", []any{"delivery_id", "a\nb"}, []string{"delivery_id"}},
		{"standard_webhooks", []any{"webhook_id", "a.b"}, []string{"webhook_id"}},
		{"signature", []any{"secret", ""}, []string{"secret"}},
		{"signature", []any{"signature", "not hex"}, []string{"signature"}},
		{"ohp", []any{"signature", vector["signature_v2"]}, []string{"signature"}},
		{"provider", []any{"signature", vector["signature_v2"] + "*"}, []string{"signature"}},
	} {
		v := checked(t, given(c.scheme, c.more...))
		require.Equal(t, []any{false, "missing_input", c.missing}, []any{v.Valid, v.Reason, v.Missing}, "%+v", c)
	}
}

// FuzzVerify: whatever is given has one of four verdicts, and only what the
// package that signs made is valid.
func FuzzVerify(f *testing.F) {
	for name := range schemes {
		f.Add(name, vector["raw_body"], vector["secret"], vector[name], vector["timestamp"], vector["delivery_id"])
	}
	f.Fuzz(func(t *testing.T, scheme, body, secret, sig, at, id string) {
		if _, ok := schemes[scheme]; !ok {
			return
		}
		out, err := verify(cloud.Caller{}, catalog.Given{"scheme": scheme, "raw_body": body, "secret": secret, "signature": sig, "timestamp": at, "delivery_id": id, "webhook_id": id})
		require.NoError(t, err)
		v := out.(signatureCheck)
		require.Contains(t, []string{reasonOK, reasonMismatch, reasonStale, reasonMissing}, v.Reason)
		require.Equal(t, v.Reason == reasonOK, v.Valid)
	})
}

// signed are requests as the sender signs them now, and ones that are not right.
func signed(secret string) (good, bad []map[string]string, body string) {
	body = `{"event":"order.created","data":{"name":"Zoë"}}`
	now, key := time.Now(), []byte(secret)
	request := func(at time.Time, b string, key []byte) map[string]string {
		return map[string]string{"X-Webhook-Timestamp": strconv.FormatInt(at.Unix(), 10), "X-Webhook-Delivery-Id": "d-1",
			"X-Webhook-Signature-V2": signature.V2(at, []byte(b), []byte("another secret"), key), "X-Webhook-Signature": signature.Provider(key, at, "d-1", []byte(b))}
	}
	next := request(now, body, []byte("another secret"))
	next["X-Webhook-Signature-V2"], next["X-Webhook-Signature-Next"] = signature.V2(now, []byte(body), key), signature.Provider(key, now, "d-1", []byte(body))
	good = []map[string]string{request(now, body, key), next}
	bad = []map[string]string{request(now.Add(-400*time.Second), body, key), request(now.Add(400*time.Second), body, key), request(now, body+" ", key), request(now, body, []byte("wrong")), {}}
	bad = append(bad, map[string]string{"X-Webhook-Timestamp": "soon", "X-Webhook-Signature-V2": "zz", "X-Webhook-Signature": "é"})
	return good, bad, body
}

const testSecret = "0123456789abcdef0123456789abcdef"

// The program for Go is compiled and given requests.
func TestTheGoReceiver(t *testing.T) {
	ring.SkipUnlessCheck(t, "the signature and its rules in one process; this one builds a program")
	t.Parallel()
	dir := t.TempDir()
	text, err := program("verify", "go")
	require.NoError(t, err)
	good, bad, body := signed(testSecret)
	harness := fmt.Sprintf(`package receiver

import ("net/http"; "testing")

func TestRequests(t *testing.T) {
	check := func(want bool, list []map[string]string) {
		for i, m := range list {
			h := http.Header{}
			for k, v := range m { h.Set(k, v) }
			if a, p := ValidAccount(%[1]q, h, []byte(%[2]q)), ValidProvider(%[1]q, h, []byte(%[2]q)); a != want || p != want {
				t.Errorf("%%v %%d: account %%v, provider %%v", want, i, a, p)
			}
		}
	}
	check(true, %#[3]v)
	check(false, %#[4]v)
}
`, testSecret, body, good, bad)
	for name, content := range map[string]string{"go.mod": "module receiver\n\ngo 1.24\n", "receiver.go": text, "receiver_test.go": harness} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	for _, args := range [][]string{{"vet", "."}, {"test", "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local", "GOPROXY=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// The programs for Python and PHP are given the same requests, where there is a
// program that runs them.
func TestTheOtherReceivers(t *testing.T) {
	t.Parallel()
	good, bad, body := signed(testSecret)
	cases, err := json.Marshal(map[string]any{"good": good, "bad": bad, "body": body, "secret": testSecret})
	require.NoError(t, err)
	for language, run := range map[string]struct{ program, file, harness string }{
		"python": {"python3", "receiver.py", `
import json, sys
c = json.load(open(sys.argv[1], encoding="utf-8"))
body = c["body"].encode()
for want, name in ((True, "good"), (False, "bad")):
    for i, headers in enumerate(c[name]):
        got = (valid_account(c["secret"], headers, body), valid_provider(c["secret"], headers, body))
        assert got == (want, want), (name, i, got)
print("done")
`},
		"php": {"php", "receiver.php", `
$c = json_decode(file_get_contents($argv[1]), true);
foreach (['good' => true, 'bad' => false] as $name => $want) {
    foreach ($c[$name] as $i => $headers) {
        $headers = array_change_key_case($headers);
        if (valid_account($c['secret'], $headers, $c['body']) !== $want || valid_provider($c['secret'], $headers, $c['body']) !== $want) {
            exit("$name $i");
        }
    }
}
echo 'done';
`},
	} {
		t.Run(language, func(t *testing.T) {
			path, err := exec.LookPath(run.program)
			if err != nil {
				t.Skip(run.program + " is not installed")
			}
			dir := t.TempDir()
			text, err := program("verify", language)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, run.file), []byte(text+"\n"+run.harness), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "cases.json"), cases, 0o600))
			cmd := exec.CommandContext(t.Context(), path, run.file, "cases.json")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "done")
		})
	}
}
