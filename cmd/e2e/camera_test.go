package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"rsc.io/qr"

	"github.com/postern-io/postern/edge/kiosk"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/browsertest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// writeVideo writes what a camera sees of a telephone that shows a QR code: one picture,
// which Chromium plays again and again.
func writeVideo(t *testing.T, text string) string {
	t.Helper()
	code, err := qr.Encode(text, qr.M)
	require.NoError(t, err)
	const w, h, module = scanner.FrameWidth, scanner.FrameHeight, 9
	var out bytes.Buffer
	fmt.Fprintf(&out, "YUV4MPEG2 W%d H%d F10:1 Ip A1:1 C420jpeg\n", w, h)
	left, top := (w-code.Size*module)/2, (h-code.Size*module)/2
	frame := make([]byte, w*h*3/2)
	for i := range frame {
		frame[i] = 128 // no colour
	}
	for y := range h {
		for x := range w {
			v, mx, my := byte(70), (x-left+4*module)/module-4, (y-top+4*module)/module-4
			switch {
			case mx >= 0 && my >= 0 && mx < code.Size && my < code.Size && code.Black(mx, my):
				v = 25
			case mx >= -4 && my >= -4 && mx < code.Size+4 && my < code.Size+4:
				v = 220
			}
			frame[y*w+x] = v
		}
	}
	for range 10 {
		out.WriteString("FRAME\n")
		out.Write(frame)
	}
	path := filepath.Join(t.TempDir(), "camera.y4m")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

// A recipient without a scanner at the cabinet holds the message's QR code before the
// camera of the screen: its door opens, in a real browser. The camera looks only while a
// screen asks for a code, one code in view is one try, and no picture leaves the cabinet.
func TestACodeIsHeldBeforeTheCameraOfTheScreen(t *testing.T) {
	ring.SkipUnlessFull(t, "a browser; edge/scanner and edge/kiosk try the camera alone")
	chromium, node := browsertest.Tools(t)
	w := newWorld(t, 7, 1)
	defer w.close()
	c := w.cabinets[0]
	w.ready(c)
	opened := w.begin("R-1", "PK-1")
	code, door := *opened.PickupCode, opened.Opening.Compartments[0].Door
	time.Sleep(2 * time.Second)
	require.NoError(t, c.sim.Put(door, "PK-1"))
	c.close(opened)
	w.delivered("R-1")

	camera := scanner.NewCamera()
	var page atomic.Pointer[kiosk.Kiosk]
	var mu sync.Mutex
	var tried []string
	s := scanner.New(scanner.Config{Name: "screen", Port: scanner.CameraPort, Use: scanner.UseCodes}, scanner.Options{Open: camera.Opener(scanner.OpenPort), Codes: c.agent.Codes(),
		Report: func(r scanner.Result) {
			mu.Lock()
			tried = append(tried, r.Answer.Outcome)
			mu.Unlock()
			page.Load().Scanned(r)
		}})
	page.Store(kiosk.New(kiosk.Config{DeviceCode: c.code, Operator: kiosk.Operator{Name: "Acme Logistics"}, Camera: camera, Codes: c.agent.Codes(),
		Loop: c.agent.Loop(), Link: c.agent.Link(), Now: c.agent.Now, OnSite: c.agent.OnSite,
		Store: func() kiosk.StoreState { return kiosk.StoreState{Waiting: c.agent.Store().Present().Backlog} }}))
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var ends sync.WaitGroup
	defer ends.Wait()
	defer stop()
	ends.Go(func() { _ = s.Run(ctx) })
	ends.Go(func() { _ = page.Load().Run(ctx, ln) })
	ends.Go(func() { // the recipient
		for ctx.Err() == nil && !c.sim.OpenAt(door, time.Now()) {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		_, _ = c.sim.TakeOut(door)
		_ = c.sim.CloseDoor(door)
	})

	found := w.runScript(page.Load(), http.NotFoundHandler(), chromium, node, "camera.mjs", "VIDEO="+writeVideo(t, passcode.QR(c.code, code)))
	for _, at := range []string{"start", "help", "flow", "portrait-left", "landscape-left"} {
		require.Equal(t, false, found.Screens[at], "%s: the camera is off", at)
	}
	require.Equal(t, touches{Taps: 2}, found.Taps["portrait-pickup"], "from the screen of help")
	require.NotEmpty(t, found.Screens["portrait-message"])
	require.NotEmpty(t, found.Screens["landscape-message"])
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, tried, 3, "one code in view is one try: %v", tried)
	require.Equal(t, wire.CodeOK, tried[0])
	require.NotContains(t, tried[1:], wire.CodeOK)
	delete(found.Posted, "/api/receipt") // asks for a symbol by an opening's id
	require.Len(t, found.Posted, 1, "pictures alone were sent: %v", found.Posted)
}
