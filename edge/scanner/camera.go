package scanner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/datamatrix"
	"github.com/makiuchi-d/gozxing/oned"
	"github.com/makiuchi-d/gozxing/qrcode"

	"github.com/postern-io/postern/edge/board"
)

// CameraPort is the port of a scanner that is the camera of the device's screen: its page
// shows pictures to a Camera.
const CameraPort = "camera"

// Size of a picture: one byte of brightness for each pixel, rows from the top.
const (
	FrameWidth  = 640
	FrameHeight = 480
	FrameSize   = FrameWidth * FrameHeight
)

// A symbol has left the view when the pictures of goneAfter do not show it: in a bad light it
// is found now and then, and one that hangs before the camera is no try each time. After a pause
// without pictures the camera looks anew. cameraQueue is how many lines wait for a scanner that
// is slow.
const (
	goneAfter    = 10 * time.Second
	cameraPause  = 3 * time.Second
	cameraQueue  = 4
	gs1Separator = "\x1d"
)

// Errors of Camera.Show.
var (
	ErrFrameSize  = fmt.Errorf("a picture has %d×%d bytes of brightness", FrameWidth, FrameHeight)
	ErrCameraBusy = errors.New("the picture before is still being looked at")
)

// Camera looks for symbols in pictures: QR codes, Data Matrix, Code 128 and EAN, which
// check what they hold. What it finds is a line of the scanner whose port it opens, with the
// symbology identifier in front. A symbol that stays in view is one scan. Pictures are not kept.
// All methods are safe for concurrent use; one picture is looked at at a time.
type Camera struct {
	looking sync.Mutex
	lines   chan []byte

	mu     sync.Mutex
	looked time.Time            // when the newest picture was done with
	seen   map[string]time.Time // symbols in view: two may be found by turns
}

// NewCamera makes a camera that has seen nothing.
func NewCamera() *Camera {
	return &Camera{lines: make(chan []byte, cameraQueue), seen: map[string]time.Time{}}
}

// Opener opens the camera where that is a scanner's port, and other ports by open.
func (c *Camera) Opener(open Opener) Opener {
	return func(ctx context.Context, cfg Config) (board.Port, error) {
		if cfg.Port == CameraPort {
			return &cameraPort{lines: c.lines, closed: make(chan struct{})}, nil
		}
		return open(ctx, cfg)
	}
}

// Show looks at a picture and reports whether a symbol is in it, also one that was there
// in the picture before. Errors: ErrFrameSize, ErrCameraBusy.
func (c *Camera) Show(frame []byte) (found bool, err error) {
	if len(frame) != FrameSize {
		return false, ErrFrameSize
	}
	if !c.looking.TryLock() {
		return false, ErrCameraBusy
	}
	defer c.looking.Unlock()
	c.mu.Lock()
	if time.Since(c.looked) >= cameraPause {
		clear(c.seen)
	}
	c.mu.Unlock()
	line := findSymbol(frame)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked = time.Now()
	maps.DeleteFunc(c.seen, func(_ string, at time.Time) bool { return c.looked.Sub(at) >= goneAfter })
	if line == "" {
		return false, nil
	}
	if _, again := c.seen[line]; !again {
		select {
		case c.lines <- []byte(line):
		default: // the scanner is behind: the next picture shows it again
			return true, nil
		}
	}
	c.seen[line] = c.looked
	return true, nil
}

// findSymbol gives the first symbol of a picture as a scanner sends it, "" for none: those
// that messages show first. Readers of bars look along the rows, so that the picture is
// turned for bars that stand on top of each other.
func findSymbol(frame []byte) string {
	for _, r := range []gozxing.Reader{qrcode.NewQRCodeReader(), datamatrix.NewDataMatrixReader()} {
		if line := readSymbol(r, frame, FrameWidth, FrameHeight); line != "" {
			return line
		}
	}
	turned := make([]byte, len(frame))
	for i, v := range frame {
		turned[i%FrameWidth*FrameHeight+i/FrameWidth] = v
	}
	for _, r := range []gozxing.Reader{oned.NewCode128Reader(), oned.NewEAN13Reader()} {
		if line := cmp.Or(readSymbol(r, frame, FrameWidth, FrameHeight), readSymbol(r, turned, FrameHeight, FrameWidth)); line != "" {
			return line
		}
	}
	return ""
}

// readSymbol gives what one reader finds. The library is not proof against each picture:
// one that it cannot bear shows nothing.
func readSymbol(r gozxing.Reader, frame []byte, width, height int) (line string) {
	defer func() {
		if recover() != nil {
			line = ""
		}
	}()
	src, err := gozxing.NewPlanarYUVLuminanceSource(frame, width, height, 0, 0, width, height, false)
	if err != nil {
		return ""
	}
	bmp, err := gozxing.NewBinaryBitmap(gozxing.NewHybridBinarizer(src))
	if err != nil {
		return ""
	}
	got, err := r.Decode(bmp, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_TRY_HARDER: true, gozxing.DecodeHintType_ASSUME_GS1: true})
	if err != nil {
		return ""
	}
	text := got.GetText()
	if text == "" || strings.ContainsAny(text, "\r\n\t") {
		return "" // no label's, and it would be several lines
	}
	if strings.HasPrefix(text, "]C1") {
		return text
	}
	id, _ := got.GetResultMetadata()[gozxing.ResultMetadataType_SYMBOLOGY_IDENTIFIER].(string)
	return id + strings.TrimPrefix(text, gs1Separator)
}

// cameraPort is a camera as a port that nothing is written to: each line ends by LF.
type cameraPort struct {
	lines   <-chan []byte
	rest    []byte
	timeout time.Duration
	once    sync.Once
	closed  chan struct{}
}

func (p *cameraPort) SetReadTimeout(d time.Duration) error {
	p.timeout = d
	return nil
}

// Read gives what was seen; nothing after the timeout.
func (p *cameraPort) Read(b []byte) (int, error) {
	select {
	case <-p.closed:
		return 0, io.EOF
	default:
	}
	if len(p.rest) == 0 {
		select {
		case <-p.closed:
			return 0, io.EOF
		case line := <-p.lines:
			p.rest = append(line, '\n')
		case <-time.After(p.timeout):
			return 0, nil
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *cameraPort) Write(b []byte) (int, error) { return len(b), nil }

func (p *cameraPort) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}
