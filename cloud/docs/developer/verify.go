package developer

import (
	"errors"
	"regexp"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/protocol/signature"
)

// scheme is a way of signing.
type scheme struct {
	header    string // of the signature
	timestamp string // header of the time that is signed with the body; "" when none is
	id        string // header of the id that is signed, too
	argument  string // by which the caller gives that id
	algorithm string
	check     func(h signature.Header, body []byte, now time.Time, secret string) error
	signed    func(at, id string) string // what stands before the body
}

var schemes = map[string]scheme{
	"signature": {header: signature.HeaderLegacy, algorithm: "lowercase hex of HMAC-SHA256(secret, body)",
		check: func(h signature.Header, body []byte, _ time.Time, secret string) error {
			return signature.VerifyLegacy(h, body, []byte(secret))
		},
		signed: func(string, string) string { return "" }},
	"signature_v2": {header: signature.HeaderV2, timestamp: signature.HeaderTimestamp, algorithm: "lowercase hex of HMAC-SHA256(secret, timestamp + \".\" + body); several are separated by commas",
		check: func(h signature.Header, body []byte, now time.Time, secret string) error {
			return signature.VerifyV2(h, body, now, []byte(secret))
		},
		signed: func(at, _ string) string { return at + "." }},
	"provider": {header: signature.HeaderProvider, timestamp: signature.HeaderTimestamp, id: signature.HeaderDeliveryID, argument: "delivery_id",
		algorithm: "base64 of HMAC-SHA256(secret, timestamp + LF + delivery_id + LF + body)",
		check: func(h signature.Header, body []byte, now time.Time, secret string) error {
			return signature.VerifyProvider(h, body, now, []byte(secret))
		},
		signed: func(at, id string) string { return at + "\n" + id + "\n" }},
	"ohp": {header: signature.HeaderHandoff, timestamp: signature.HeaderHandoffTimestamp, algorithm: "\"v1=\" + lowercase hex of HMAC-SHA256(secret, timestamp + \".\" + body)",
		check: func(h signature.Header, body []byte, now time.Time, secret string) error {
			return signature.VerifyHandoff(h, body, now, []byte(secret))
		},
		signed: func(at, _ string) string { return at + "." }},
	"standard_webhooks": {header: signature.HeaderStandard, timestamp: signature.HeaderStandardTimestamp, id: signature.HeaderStandardID, argument: "webhook_id",
		algorithm: "\"v1,\" + base64 of HMAC-SHA256(key, webhook_id + \".\" + timestamp + \".\" + body); the key is what follows whsec_ decoded from base64, else the secret's own bytes; several are separated by spaces",
		check: func(h signature.Header, body []byte, now time.Time, secret string) error {
			key, err := signature.StandardKey(secret)
			if err != nil {
				return errSecret
			}
			return signature.VerifyStandard(h, body, now, key)
		},
		signed: func(at, id string) string { return id + "." + at + "." }},
}

// plainID is what an id in a signed text may be: the separators are no part of
// it.
var plainID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// errSecret stands for an error that says what is wrong with the secret.
var errSecret = errors.New("the secret cannot be read")

// Reasons of a verdict (mcp-ai 11).
const (
	reasonOK       = "ok"
	reasonMismatch = "mismatch"
	reasonStale    = "stale_timestamp"
	reasonMissing  = "missing_input"
)

// signatureCheck says whether a signature is right. It holds nothing of the secret.
type signatureCheck struct {
	Result    bool     `json:"result"`
	Valid     bool     `json:"valid"`
	Scheme    string   `json:"scheme"`
	Reason    string   `json:"reason"`
	Missing   []string `json:"missing,omitempty"` // arguments that are absent or cannot be read
	Header    string   `json:"signature_header"`
	Algorithm string   `json:"expected_algorithm"`
	Preview   string   `json:"signed_content_preview"`
}

// maxPreview is how much of the body is shown, in characters.
const maxPreview = 120

// verify checks a received signature. Whether the signature is right is asked
// first, so that stale_timestamp says that it is, but came too late.
func verify(_ cloud.Caller, given catalog.Given) (any, error) {
	name, body, secret := given.Text("scheme"), given.Text("raw_body"), given.Text("secret")
	s := schemes[name]
	at, id := given.Text("timestamp"), ""
	out := signatureCheck{Result: true, Scheme: name, Reason: reasonOK, Header: s.header, Algorithm: s.algorithm}
	if s.argument != "" {
		id = given.Text(s.argument)
		if !plainID.MatchString(id) {
			out.Missing = append(out.Missing, s.argument)
		}
	}
	sec, err := strconv.ParseInt(at, 10, 64)
	if s.timestamp != "" && (err != nil || sec < 0 || at != strconv.FormatInt(sec, 10)) {
		out.Missing = append(out.Missing, "timestamp")
	}
	if secret == "" {
		out.Missing = append(out.Missing, "secret")
	}
	if len(out.Missing) > 0 {
		out.Reason = reasonMissing
		return out, nil
	}
	out.Preview = s.signed(at, id) + shortened(body)
	header := func(h string) string {
		switch h {
		case s.header:
			return given.Text("signature")
		case s.timestamp:
			return at
		case s.id:
			return id
		}
		return ""
	}
	switch err := s.check(header, []byte(body), time.Unix(sec, 0), secret); {
	case errors.Is(err, errSecret):
		out.Reason, out.Missing = reasonMissing, []string{"secret"}
	case errors.Is(err, signature.ErrMissing):
		out.Reason, out.Missing = reasonMissing, []string{"signature"}
	case err != nil:
		out.Reason = reasonMismatch
	case s.timestamp != "" && apart(time.Now().Unix(), sec) > given.Int("tolerance_seconds", int64(signature.Tolerance/time.Second)):
		out.Reason = reasonStale
	default:
		out.Valid = true
	}
	return out, nil
}

// apart is how far one time is from another, in seconds; neither is negative.
func apart(a, b int64) int64 { return max(a-b, b-a) }

func shortened(s string) string {
	if r := []rune(s); len(r) > maxPreview {
		return string(r[:maxPreview]) + "…"
	}
	return s
}
