package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/internal/ring"
)

// A driver receives on its own topic what others say, at once; the provider gets
// the newest only, and only when no app was there to receive it.
func TestADriverIsPushedWhatOthersSay(t *testing.T) {
	bothTalks(t, pushed)
}

func pushed(t *testing.T, w *talkWorld) {
	driver := w.tokens["driver"]
	topic := fmt.Sprintf("tms/driver/%d/push", w.ids["driver"])
	app, e := w.listen("driver")
	heard := func(n int) []heardEvent {
		t.Helper()
		var out []heardEvent
		w.eventually(func() bool {
			out = nil
			seen := map[any]bool{}
			e.mu.Lock()
			defer e.mu.Unlock()
			for _, h := range e.all {
				if h.topic == topic && !seen[h.body["push_id"]] {
					seen[h.body["push_id"]] = true
					out = append(out, h)
				}
			}
			return len(out) >= n
		}, "%d pushes", n)
		require.Len(t, out, n)
		return out
	}
	require.Equal(t, "order_assigned", heard(1)[0].body["type"], "what it was given a moment ago")
	w.says("driver", "mine", "all")
	id := w.says("customer", strings.Repeat("é", 130), "all")
	hidden := w.says("admin", "for staff", "staff_driver")
	w.eventually(func() bool { return len(e.types(w.chat())) == 2 && len(e.types(w.staff())) == 1 })
	got := heard(3)
	body := got[1].body
	talk := w.good("GET", w.of(""), driver, nil)["conversation"].(map[string]any)["conversation_id"]
	require.Equal(t, "order_chat_message", body["type"])
	require.Equal(t, "Noor Shop", body["title"])
	require.Equal(t, strings.Repeat("é", 120), body["body"])
	require.Equal(t, map[string]any{"order_id": float64(w.order), "conversation_id": talk, "message_id": float64(id), "tracking_number": w.number}, body["data"])
	require.EqualValues(t, hidden, got[2].body["data"].(map[string]any)["message_id"])
	states := func() map[string]int {
		n := map[string]int{}
		for _, p := range w.good("GET", "/api/v1/driver/pushes", driver, nil)["pushes"].([]any) {
			n[p.(map[string]any)["state"].(string)]++
		}
		return n
	}
	w.eventually(func() bool { return states()["heard"] == 3 }, "the provider has nothing to do, and that one took another's place changes nothing")

	app.Disconnect(0)
	w.good("POST", "/api/v1/driver/push-token", driver, map[string]any{"token": "device-1", "platform": "fcm"})
	w.says("driver", "mine again", "all")
	var last int64
	for i := range 4 {
		last = w.says("customer", fmt.Sprintf("message %d", i), "all")
	}
	var after map[string]int
	// The broker may learn of the end of the app's connection after the first of them.
	w.eventually(func() bool {
		after = states()
		return after["sent"] > 0 && after["waiting"] == 0 && after["replaced"]+after["sent"]+after["heard"] >= 3+4
	})
	require.Equal(t, 3+4, after["replaced"]+after["sent"]+after["heard"], "own messages are none")
	require.Less(t, after["sent"], 4, "what comes within two seconds takes the place of what was before")
	require.Len(t, w.got(), after["sent"])
	var sent struct {
		Type string
		Data cloud.PushData
	}
	require.NoError(t, json.Unmarshal(w.got()[after["sent"]-1].body, &sent))
	require.Equal(t, "order_chat_message", sent.Type)
	require.Equal(t, last, sent.Data.MessageID)
}

// A message that was committed by a node that ended before it sent the message
// reaches the apps that come back to the next one; so does what is said after that.
func TestACloudThatComesBackTellsWhatItDidNot(t *testing.T) {
	bothTalks(t, comesBack)
}

func comesBack(t *testing.T, w *talkWorld) {
	// The reference client comes again by itself, others with what they have.
	stays := w.mosquitto(w.pass("staff"), overTCP, "mqttv311")
	p := w.pass("customer")
	gone := w.node(p, overWS, 4, nil, "")
	ids := []int64{w.says("driver", "before", "all")}
	w.eventually(func() bool { return len(stays.types(w.chat())) == 1 && len(gone.types(w.chat())) == 1 })
	w.stop()
	w.eventually(gone.gone)

	dead, err := New(t.Context(), w.cfg) // never runs: it commits and sends nothing
	require.NoError(t, err)
	who, err := dead.findToken(t.Context(), auth.Hash(w.tokens["driver"]))
	require.NoError(t, err)
	out, err := dead.chats.Send(t.Context(), cloud.Caller{Account: who.Account}, chat.SendInput{OrderID: cloud.OrderID(w.order), Text: "committed"})
	require.NoError(t, err)
	ids = append(ids, int64(out.Message.ID))
	dead.stop()
	require.NoError(t, dead.Broker.Close())
	require.NoError(t, dead.Store.Close())
	require.NoError(t, dead.Files.Close())

	w.start(func() {})
	again := w.node(p, overWS, 4, nil, "")
	w.eventually(func() bool { return len(again.types(w.chat())) == 2 })
	ids = append(ids, w.says("driver", "after", "all"))
	for _, e := range []*ear{stays, again} {
		w.eventually(func() bool { return len(e.types(w.chat())) == 3 }, e.role)
		for i, h := range e.heard(w.chat()) {
			require.EqualValues(t, ids[i], h.body["data"].(map[string]any)["message"].(map[string]any)["message_id"], "in order")
		}
	}
}

// A conversation that closes by itself: an app that is let go for it receives that first.
func TestAConversationThatClosesByItselfIsSent(t *testing.T) {
	bothTalks(t, closesByItself)
}

func closesByItself(t *testing.T, w *talkWorld) {
	w.says("driver", "Here", "all")
	_, home := w.listen("recipient")
	_, customer := w.listen("customer")
	for _, e := range []*ear{home, customer} {
		w.eventually(func() bool { return len(e.types(w.chat())) == 1 })
	}
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		o, err := v.Order(1, cloud.OrderID(w.order))
		o.Status, o.StatusAt = cloud.OrderDelivered, time.Now().UTC().Add(-24*time.Hour)
		return &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}}, err
	}))
	w.eventually(home.gone, "the recipient leaves")
	for _, e := range []*ear{home, customer} {
		w.eventually(func() bool { return len(e.types(w.chat())) == 2 }, "%s hears of it", e.role)
		require.Equal(t, []string{"message.created", "conversation.closed"}, e.types(w.chat()))
	}
	require.False(t, customer.gone())
}

// What a chat refuses over HTTP, with the status that says why.
func TestWhatAChatRefuses(t *testing.T) {
	ring.SkipUnlessCheck(t, "single calls and packets")
	t.Parallel()
	w := newTalkWorld(t, "")
	send := func(role string, body map[string]any) (int, map[string]any) {
		t.Helper()
		return w.call("POST", w.of("/messages"), w.tokens[role], body)
	}
	// Characters are those of Unicode, however many bytes or units of UTF-16 they take.
	var status int
	var out map[string]any
	for _, letter := range []string{"x", "長", "😀"} {
		status, out = send("customer", map[string]any{"text": strings.Repeat(letter, 2000)})
		require.Equal(t, http.StatusCreated, status)
		id := out["message"].(map[string]any)["message_id"]
		require.Equal(t, strings.Repeat(letter, 2000), out["message"].(map[string]any)["text"])
		status, out = send("customer", map[string]any{"text": strings.Repeat(letter, 2001)})
		require.Equal(t, http.StatusUnprocessableEntity, status)
		require.Contains(t, out["errors"], "text")
		status, out = w.call("PATCH", fmt.Sprintf("/api/v1/order-chat/messages/%.0f", id), w.tokens["customer"], map[string]any{"text": strings.Repeat(letter, 2001)})
		require.Equal(t, http.StatusUnprocessableEntity, status)
		require.Contains(t, out["errors"], "text")
	}

	first, out := send("customer", map[string]any{"text": "one", "client_message_id": "c-1"})
	require.Equal(t, http.StatusCreated, first)
	_, again := send("customer", map[string]any{"text": "two", "client_message_id": "c-1"})
	require.Equal(t, out["message"], again["message"])

	upload := func(content string) (int, map[string]any) {
		t.Helper()
		var b bytes.Buffer
		form := multipart.NewWriter(&b)
		require.NoError(t, form.WriteField("order_id", fmt.Sprint(w.order)))
		part, err := form.CreateFormFile("file", "door.png")
		require.NoError(t, err)
		_, err = io.WriteString(part, content)
		require.NoError(t, err)
		require.NoError(t, form.Close())
		req, err := http.NewRequestWithContext(t.Context(), "POST", w.base+"/api/v1/order-chat/attachments", &b)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+w.tokens["recipient"])
		req.Header.Set("Content-Type", form.FormDataContentType())
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		var out map[string]any
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&out))
		return resp.StatusCode, out
	}
	for _, bad := range []string{"<script>", "\x89PNG\r\n\x1a\nnot a picture", "MZ\x90\x00"} {
		status, out = upload(bad)
		require.Equal(t, http.StatusUnprocessableEntity, status, "%q: %v", bad, out)
	}
	status, out = upload("%PDF-1.7 x")
	require.Less(t, status, 300, "%v", out)
	const pdf, most = "%PDF-1.7", 10 << 20
	status, out = upload(pdf + strings.Repeat("x", most-len(pdf)))
	require.Less(t, status, 300, "%v", out)
	require.EqualValues(t, most, out["attachment"].(map[string]any)["size"])
	for _, more := range []int{1, 1 << 20} {
		status, out = upload(pdf + strings.Repeat("x", most-len(pdf)+more))
		require.Equal(t, http.StatusRequestEntityTooLarge, status, "%v", out)
		require.Equal(t, "PAYLOAD_TOO_LARGE", out["code"])
	}

	// Where a photo was taken is in nothing that can be read from here.
	var plain bytes.Buffer
	require.NoError(t, jpeg.Encode(&plain, image.NewGray(image.Rect(0, 0, 30, 20)), nil))
	const where = "GPS 43.6532 N 79.3832 W"
	status, out = upload("\xff\xd8\xff\xe1\x00\x1fExif\x00\x00" + where + plain.String()[2:] + where)
	require.Less(t, status, 300, "%v", out)
	address := out["attachment"].(map[string]any)["url"].(string)
	resp, err := http.Get(w.base + address[strings.Index(address, "/api/"):])
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, plain.Bytes(), got)
	require.Nil(t, out["attachment"].(map[string]any)["thumbnail_url"], "of so small a photo")

	large := image.NewGray(image.Rect(0, 0, 1000, 750))
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range large.Pix {
		large.Pix[i] = uint8(noise.IntN(256))
	}
	plain.Reset()
	require.NoError(t, jpeg.Encode(&plain, large, nil))
	status, out = upload(plain.String())
	require.Less(t, status, 300, "%v", out)
	file := out["attachment"].(map[string]any)
	out = w.good("POST", w.of("/messages"), w.tokens["recipient"], map[string]any{"attachment_ids": []any{file["attachment_id"]}})
	address = out["message"].(map[string]any)["attachments"].([]any)[0].(map[string]any)["thumbnail_url"].(string)
	resp, err = http.Get(w.base + address[strings.Index(address, "/api/"):])
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "image/jpeg", resp.Header.Get("Content-Type"))
	thumb, err := jpeg.Decode(resp.Body)
	require.NoError(t, err)
	require.Equal(t, image.Rect(0, 0, 480, 360), thumb.Bounds())

	for range 20 {
		status, _ = send("driver", map[string]any{"text": "x"})
		require.Equal(t, http.StatusCreated, status)
	}
	status, out = send("driver", map[string]any{"text": "x"})
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, "RATE_LIMITED", out["code"])
	require.Positive(t, out["details"].(map[string]any)["retry_after"])
	status, _ = send("staff", map[string]any{"text": "x"})
	require.Equal(t, http.StatusCreated, status, "others are not held up")

	w.good("POST", w.of("/close"), w.tokens["staff"], nil)
	status, out = send("customer", map[string]any{"text": "x"})
	require.Equal(t, http.StatusConflict, status)
	require.Equal(t, "CONVERSATION_CLOSED", out["code"])
	status, again = send("customer", map[string]any{"text": "one", "client_message_id": "c-1"})
	require.Less(t, status, 300, "a repeat is no new message")
	require.Equal(t, "one", again["message"].(map[string]any)["text"])
}
