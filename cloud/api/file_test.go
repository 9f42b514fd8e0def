package api_test

import (
	"bufio"
	"bytes"
	"fmt"
	"mime/multipart"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// fetch gets a file as a browser does.
func (x *world) fetch(method, address string) *fasthttp.Response {
	var req fasthttp.Request
	resp := &fasthttp.Response{}
	req.Header.SetMethod(method)
	req.SetRequestURI("http://cloud.test" + address)
	req.Header.Set("Accept-Encoding", "gzip")
	req.Header.Set("Accept-Language", "fr")
	resp.SkipBody = method == "HEAD"
	require.NoError(x.t, x.c.DoTimeout(&req, resp, 20*time.Second))
	return resp
}

// A file is read back at its address by every bearer of the address, and at no other.
func TestFilesAreReadAtTheirAddress(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	p := x.proof()
	require.Regexp(t, `^/api/v1/files/proof/[0-9a-f]{32}\.png\?expires=[0-9]+&signature=[0-9a-f]{64}$`, p.address)
	for _, method := range []string{"GET", "HEAD"} {
		r := x.fetch(method, p.address)
		require.Equal(t, 200, r.StatusCode())
		require.Equal(t, "image/png", string(r.Header.ContentType()))
		require.Equal(t, "nosniff", string(r.Header.Peek("X-Content-Type-Options")))
		require.Equal(t, "sandbox; default-src 'none'", string(r.Header.Peek("Content-Security-Policy")))
		require.Regexp(t, `^inline; filename="[0-9a-f]{32}\.png"$`, string(r.Header.Peek("Content-Disposition")))
		require.Empty(t, r.Header.Peek("Content-Encoding"))
		require.Equal(t, "no-store", string(r.Header.Peek("Cache-Control")))
		require.Positive(t, r.Header.ContentLength())
		if method == "GET" {
			require.True(t, bytes.HasPrefix(r.Body(), []byte("\x89PNG")))
			require.Equal(t, r.Header.ContentLength(), len(r.Body()))
		}
	}
	u, err := url.Parse(p.address)
	require.NoError(t, err)
	later := u.Query()
	at, err := strconv.ParseInt(later.Get("expires"), 10, 64)
	require.NoError(t, err)
	later.Set("expires", fmt.Sprint(at+1))
	for _, bad := range []string{u.Path, u.Path + "?" + later.Encode(), strings.Replace(p.address, "signature=", "signature=0", 1), strings.Replace(p.address, ".png", ".jpg", 1),
		"/api/v1/files/proof/..%2f..%2fkeys.json?" + u.RawQuery, "/api/v1/files/%2e%2e/keys.json?" + u.RawQuery, "/api/v1/files/proof/x?expires=9999999999&signature="} {
		r := x.fetch("GET", bad)
		require.Equal(t, 404, r.StatusCode(), bad)
		require.Contains(t, string(r.Body()), "NOT_FOUND", bad)
	}
	old := x.files.Address(strings.TrimPrefix(u.Path, "/api/v1/files/"), time.Now().Add(-time.Second))
	r := x.fetch("GET", old)
	require.Equal(t, 410, r.StatusCode())
	require.Contains(t, string(r.Body()), "Ce lien a expiré")
	require.Equal(t, 404, x.fetch("GET", x.files.Address("proof/0123456789abcdef0123456789abcdef.png", time.Now().Add(time.Hour))).StatusCode(), "signed, but not there")
}

// announced is what the headers of a request with a body of n bytes are answered
// within a time, 0 when the body is waited for.
func (x *world) announced(path, headers string, n int, within time.Duration) int {
	c, err := x.c.Dial("")
	require.NoError(x.t, err)
	defer c.Close()
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: cloud.test\r\n%sContent-Type: multipart/form-data; boundary=x\r\nContent-Length: %d\r\n\r\n", path, headers, n)
	require.NoError(x.t, err)
	status := make(chan int, 1)
	go func() {
		var r fasthttp.Response
		if r.Read(bufio.NewReader(c)) != nil {
			status <- 0
			return
		}
		status <- r.StatusCode()
	}()
	select {
	case s := <-status:
		return s
	case <-time.After(within):
		return 0
	}
}

// big is a form with a file of n bytes, which begins as a document.
func big(n int) string {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary("a-part-ends-here")
	for _, f := range [][2]string{{"type", "document"}, {"service_type", "1"}, {"service_status", "1"}} {
		_ = w.WriteField(f[0], f[1])
	}
	f, _ := w.CreateFormFile("file", "x.pdf")
	_, _ = f.Write(append([]byte("%PDF-1.7\n"), make([]byte, n-9)...))
	_ = w.Close()
	return b.String()
}

func TestUploads(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	id, _ := x.order(cloud.OrderNew)
	path := "/api/v1/orders/" + id + "/proof-files"
	good := []string{"type", "photo", "service_type", "1", "service_status", "1", "captured_at", "2026-11-20T10:00:00-05:00", "latitude", "43.65", "longitude", "-79.38", "more", "is ignored"}
	a := x.made("POST", path, x.token(admin), proofOf(good...))
	require.Equal(t, "image/png", at(a, "file", "mime_type"), "by its bytes")
	require.NotContains(t, at(a, "file", "url"), "me.exe")
	require.InDelta(t, -79.38, at(a, "file", "longitude"), 1e-9)

	require.Equal(t, 201, x.do("POST", path, x.token(admin), big(catalog.MaxUpload)).status, "20 MB, no less")
	over := x.do("POST", path, x.token(admin), big(catalog.MaxUpload+1))
	require.Equal(t, 413, over.status, "%s", over.body)
	require.Equal(t, "PAYLOAD_TOO_LARGE", over.code())
	login := "Authorization: Bearer " + x.token(admin) + "\r\n"
	require.Equal(t, 413, x.announced(path, login, catalog.MaxUpload+1<<20, time.Minute))
	require.Equal(t, 413, x.announced(path, "", 3<<20, time.Minute), "of nobody no more than any other body")
	require.Equal(t, 401, x.announced(path, "Authorization: x\r\n", 3<<20, time.Minute), "what is no token lets no long body in")
	require.Equal(t, 401, x.announced(path, "Authorization: Bearer "+strings.Repeat("x", 64)+"\r\n", 3<<20, time.Minute), "nor does an unknown token")
	require.Equal(t, 413, x.announced("/api/v1/orders/"+id+"/cancel", login, 3<<20, time.Minute), "other bodies are as short as ever")
	require.Zero(t, x.announced(path, login, 3<<20, 200*time.Millisecond), "it waits for the body")

	for name, body := range map[string]string{"JSON": `{"type":"photo"}`, "nothing": ""} {
		require.Equal(t, 415, x.do("POST", path, x.token(admin), body).status, name)
	}
	const head = "--a-part-ends-here\r\nContent-Disposition: form-data; name="
	for name, bad := range map[string]struct {
		body   string
		status int
		field  string
	}{
		"no file":               {head + "\"type\"\r\n\r\nphoto\r\n--a-part-ends-here--\r\n", 422, "file"},
		"an empty file":         {head + "\"file\"; filename=\"x\"\r\n\r\n\r\n--a-part-ends-here--\r\n", 422, "file"},
		"no picture":            {strings.Replace(proofOf(good...), "\x89PNG", "<htm", 1), 422, "file"},
		"a word for a number":   {strings.Replace(proofOf(good...), "43.65", "north", 1), 422, "latitude"},
		"no number at all":      {strings.Replace(proofOf(good...), "43.65", "NaN", 1), 422, "latitude"},
		"an unknown type":       {strings.Replace(proofOf(good...), "photo", "song", 1), 422, "type"},
		"it breaks off":         {head + "\"type\"\r\n\r\npho", 400, ""},
		"a text with a zero":    {strings.Replace(proofOf(good...), "photo", "pho\x00to", 1), 400, ""},
		"more parts than fit":   {strings.Repeat(head+"\"x\"\r\n\r\ny\r\n", 40) + "--a-part-ends-here--\r\n", 400, ""},
		"a text that is a file": {head + "\"type\"\r\n\r\n" + strings.Repeat("x", 9<<10) + "\r\n--a-part-ends-here--\r\n", 413, ""},
	} {
		a := x.do("POST", path, x.token(admin), bad.body)
		require.Equal(t, bad.status, a.status, "%s: %s", name, a.body)
		if bad.field != "" {
			require.NotNil(t, at(a.json, "errors", bad.field), "%s: %s", name, a.body)
		}
	}

	// A repeat with a key is the same upload, however its parts are cut.
	once := x.do("POST", path, x.token(admin), proofOf(good...), "Idempotency-Key", "k1")
	again := x.do("POST", path, x.token(admin), strings.ReplaceAll(proofOf(good...), "a-part-ends-here", "another-boundary"), "Idempotency-Key", "k1")
	require.Equal(t, 201, once.status, "%s", once.body)
	require.Equal(t, string(once.body), string(again.body))
	other := x.do("POST", path, x.token(admin), proofOf(append([]string{"type", "signature"}, good[2:]...)...), "Idempotency-Key", "k1")
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", other.code())
	files, _ := at(x.made("GET", "/api/v1/orders/"+id, x.token(admin), ""), "order", "proof_files_detail").([]any)
	require.Len(t, files, 3)
}

// A driver cannot report a delivery whose proof is missing, and the answer says what to
// do first.
func TestADeliveryNeedsItsProof(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	route := x.route()
	body := strings.Replace(orderOf("SO-PROOF"), "{", `{"photo_required":true,"signature_required":true,`, 1)
	id := x.id(at(x.made("POST", "/api/v1/client/orderCreate", x.token(admin), body), "order_id"))
	x.made("POST", "/api/v1/routes/"+route+"/orders", x.token(admin), `{"order_ids":[`+id+`]}`)
	x.made("POST", "/api/v1/routes/"+route+"/dispatch", x.token(admin), `{}`)
	driver, mine := x.token(cloud.DriverAccount), "/api/v1/driver/orders/"+id
	x.made("POST", mine+"/start-delivery", driver, `{}`)
	refused := func(missing ...any) {
		t.Helper()
		a := x.do("POST", mine+"/deliver", driver, `{"result":"success"}`, "Accept-Language", "de")
		require.Equal(t, 422, a.status, "%s", a.body)
		require.Equal(t, "PROOF_REQUIRED", a.code())
		require.Equal(t, missing, at(a.json, "details", "missing"))
		require.Contains(t, string(a.body), "hochladen")
	}
	upload := func(kind, service, result string) {
		t.Helper()
		x.made("POST", mine+"/proof-files", driver, proofOf("type", kind, "service_type", service, "service_status", result))
	}
	refused("photo", "signature")
	upload("photo", "1", "2")
	upload("photo", "2", "1")
	refused("photo", "signature")
	upload("photo", "1", "1")
	refused("signature")
	upload("signature", "1", "1")
	x.made("POST", mine+"/deliver", driver, `{"result":"success","recipient_name":"Jane Smith"}`)
	public := x.made("GET", "/api/v1/tracking/"+fmt.Sprint(at(x.made("GET", "/api/v1/orders/"+id, x.token(admin), ""), "order", "tracking_number"))+"?verify=0123", "", "")
	files, _ := at(public, "proof", "files").([]any)
	require.Len(t, files, 2)
	address, _ := files[0].(string)
	require.Equal(t, 200, x.fetch("GET", strings.TrimPrefix(address, "http://cloud.test")).StatusCode())
}
