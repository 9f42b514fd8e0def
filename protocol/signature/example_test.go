package signature_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/postern-io/postern/protocol/signature"
)

// A receiver that answers 401 to a sender that does not know the secret.
func ExampleVerify() {
	const secret = "0123456789abcdef0123456789abcdef"
	receive := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if _, err := signature.Verify(r.Header.Get, body, time.Now(), secret); err != nil {
			http.Error(w, "bad signature", http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}

	send := func(sent string) int {
		const signed = `{"event_id":"OCR-120045"}`
		r := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(sent))
		r.Header.Set("X-Webhook-Timestamp", fmt.Sprint(time.Now().Unix()))
		r.Header.Set("X-Webhook-Signature-V2", signature.V2(time.Now(), []byte(signed), []byte(secret)))
		w := httptest.NewRecorder()
		receive(w, r)
		return w.Code
	}
	fmt.Println(send(`{"event_id":"OCR-120045"}`), send(`{"event_id":"OCR-120046"}`))
	// Output: 204 401
}
