package scanner_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/datamatrix"
	"github.com/makiuchi-d/gozxing/oned"
	"github.com/stretchr/testify/require"
	"rsc.io/qr"

	"github.com/postern-io/postern/edge/board"
	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/protocol/gs1"
)

// symbol is what is dark of a symbol, module by module.
type symbol struct {
	width, height int
	dark          func(x, y int) bool
}

func qrSymbol(t *testing.T, text string) symbol {
	t.Helper()
	c, err := qr.Encode(text, qr.M)
	require.NoError(t, err)
	return symbol{c.Size, c.Size, c.Black}
}

// drawn gives a symbol of a writer of the library: there is no other of these here.
func drawn(t *testing.T, w gozxing.Writer, text string, f gozxing.BarcodeFormat, height int) symbol {
	t.Helper()
	m, err := w.Encode(text, f, 0, height, nil)
	require.NoError(t, err)
	return symbol{m.GetWidth(), m.GetHeight(), m.Get}
}

// picture holds a symbol before a camera: grey paper before a darker room, a light that is
// brighter on one side, turned by quarters, with noise.
func picture(s symbol, module, quarter int, rnd *rand.Rand) []byte {
	f := make([]byte, scanner.FrameSize)
	w, h := s.width*module, s.height*module
	if quarter%2 == 1 {
		w, h = h, w
	}
	left, top, quiet := (scanner.FrameWidth-w)/2, (scanner.FrameHeight-h)/2, 6*module
	for y := range scanner.FrameHeight {
		for x := range scanner.FrameWidth {
			v := 60 // the room
			px, py := x-left, y-top
			if px >= -quiet && py >= -quiet && px < w+quiet && py < h+quiet {
				v = 150 + 60*x/scanner.FrameWidth
			}
			if px >= 0 && py >= 0 && px < w && py < h {
				mx, my := px/module, py/module
				switch quarter {
				case 1:
					mx, my = my, s.height-1-mx
				case 2:
					mx, my = s.width-1-mx, s.height-1-my
				case 3:
					mx, my = s.width-1-my, mx
				}
				if s.dark(mx, my) {
					v = 40 + 20*x/scanner.FrameWidth
				}
			}
			f[y*scanner.FrameWidth+x] = byte(v + rnd.IntN(15))
		}
	}
	return f
}

// lineOf gives what a scanner whose port is the camera reads next, "" for nothing.
func lineOf(t *testing.T, p board.Port) string {
	t.Helper()
	require.NoError(t, p.SetReadTimeout(10*time.Millisecond))
	b := make([]byte, 4096)
	n, err := p.Read(b)
	require.NoError(t, err)
	return strings.TrimSuffix(string(b[:n]), "\n")
}

func cameraPort(t *testing.T, c *scanner.Camera) board.Port {
	t.Helper()
	p, err := c.Opener(nil)(t.Context(), scanner.Config{Name: "screen", Port: scanner.CameraPort})
	require.NoError(t, err)
	return p
}

// Symbols of messages and of labels are read as a scanner sends them, whichever way they
// are held, and the label reader knows them by their identifier.
func TestACameraReadsWhatIsHeldBeforeIt(t *testing.T) {
	code128 := oned.NewCode128Writer()
	for name, c := range map[string]struct {
		draw  symbol
		line  string
		gs1   bool
		turns []int
	}{
		"QR code of a pickup code": {qrSymbol(t, "PU:PIER-7:482913"), "]Q1PU:PIER-7:482913", false, []int{0, 1, 2, 3}},
		"GS1 address":              {qrSymbol(t, "https://id.gs1.org/00/106141411234567897"), "]Q1https://id.gs1.org/00/106141411234567897", true, []int{0, 2}},
		"long QR code":             {qrSymbol(t, "PX:"+strings.Repeat("aB3_-", 60)), "]Q1PX:" + strings.Repeat("aB3_-", 60), false, []int{0, 1}},
		"Data Matrix":              {drawn(t, datamatrix.NewDataMatrixWriter(), "1Z999AA10123456784", gozxing.BarcodeFormat_DATA_MATRIX, 0), "]d11Z999AA10123456784", false, []int{0, 1, 2, 3}},
		"Code 128":                 {drawn(t, code128, "1Z999AA10123456784", gozxing.BarcodeFormat_CODE_128, 40), "]C01Z999AA10123456784", false, []int{0, 1, 2, 3}},
		"GS1-128":                  {drawn(t, code128, "\u00f100106141411234567897", gozxing.BarcodeFormat_CODE_128, 40), "]C100106141411234567897", true, []int{0, 2}},
		"EAN":                      {drawn(t, oned.NewEAN13Writer(), "9521234543213", gozxing.BarcodeFormat_EAN_13, 40), "]E09521234543213", true, []int{0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			for _, q := range c.turns {
				cam := scanner.NewCamera()
				p := cameraPort(t, cam)
				module := max(2, min(6, 400/max(c.draw.width, c.draw.height)))
				if c.draw.height == 40 { // bars are drawn wide
					module = 2
				}
				found, err := cam.Show(picture(c.draw, module, q, rnd))
				require.NoError(t, err)
				require.True(t, found, "turned by %d quarters", q)
				got := lineOf(t, p)
				require.Equal(t, c.line, got)
				label, err := gs1.Read([]byte(got))
				require.NoError(t, err)
				require.Equal(t, c.gs1, len(label.Elements) > 0, "%+v", label)
			}
		})
	}
}

// A symbol that stays in view is one scan: a wrong code that hangs there costs one try, also
// where it is found in a few of the pictures only. It is another once it has left the view, or
// the camera looks anew.
func TestASymbolInViewIsOneScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		cam := scanner.NewCamera()
		p := cameraPort(t, cam)
		one, other := picture(qrSymbol(t, "PU:PIER-7:482913"), 5, 0, rnd), picture(qrSymbol(t, "PU:PIER-7:111111"), 5, 0, rnd)
		blank := make([]byte, scanner.FrameSize)
		show := func(f []byte, is bool) {
			t.Helper()
			found, err := cam.Show(f)
			require.NoError(t, err)
			require.Equal(t, is, found)
			time.Sleep(250 * time.Millisecond)
		}
		for range 40 {
			show(one, true)
		}
		require.Equal(t, "]Q1PU:PIER-7:482913", lineOf(t, p))
		require.Empty(t, lineOf(t, p))
		for range 10 { // a bad light: it is found now and then
			for range 35 {
				show(blank, false)
			}
			show(one, true)
		}
		require.Empty(t, lineOf(t, p), "it has not left the view")
		show(other, true)
		require.Equal(t, "]Q1PU:PIER-7:111111", lineOf(t, p))
		for range 41 {
			show(blank, false)
		}
		show(other, true)
		require.Equal(t, "]Q1PU:PIER-7:111111", lineOf(t, p), "taken away, and held there once more")
		time.Sleep(3 * time.Second)
		show(other, true)
		require.Equal(t, "]Q1PU:PIER-7:111111", lineOf(t, p), "the camera was off")
		for range 10 { // a scanner that is behind
			show(one, true)
			time.Sleep(4 * time.Second)
		}
		n := 0
		for lineOf(t, p) != "" {
			n++
		}
		require.Equal(t, 4, n)
		show(one, true)
		require.NotEmpty(t, lineOf(t, p), "what found no room is no repeat")
	})
}

// Two symbols in view, such as a code beside a label, may be found by turns: each is one
// scan, and a wrong code among them costs one try.
func TestSymbolsThatAreFoundByTurnsAreOneScanEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		cam := scanner.NewCamera()
		p := cameraPort(t, cam)
		views := [][]byte{picture(qrSymbol(t, "PU:PIER-7:482913"), 5, 0, rnd), picture(drawn(t, oned.NewCode128Writer(), "1Z999AA10123456784", gozxing.BarcodeFormat_CODE_128, 40), 2, 0, rnd)}
		var got []string
		for i := range 20 {
			_, err := cam.Show(views[i%2])
			require.NoError(t, err)
			time.Sleep(250 * time.Millisecond)
			if line := lineOf(t, p); line != "" {
				got = append(got, line)
			}
		}
		require.Equal(t, []string{"]Q1PU:PIER-7:482913", "]C01Z999AA10123456784"}, got)
	})
}

func TestCameraRefusesWhatIsNoPicture(t *testing.T) {
	cam := scanner.NewCamera()
	for _, n := range []int{0, 1, scanner.FrameSize - 1, scanner.FrameSize + 1} {
		_, err := cam.Show(make([]byte, n))
		require.ErrorIs(t, err, scanner.ErrFrameSize)
	}
	for name, v := range map[string]byte{"dark": 0, "bright": 255} {
		f := make([]byte, scanner.FrameSize)
		for i := range f {
			f[i] = v
		}
		found, err := cam.Show(f)
		require.NoError(t, err, name)
		require.False(t, found, name)
	}
	p := cameraPort(t, cam)
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	_, err := p.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	away := errors.New("away")
	_, err = cam.Opener(func(context.Context, scanner.Config) (board.Port, error) { return nil, away })(t.Context(), scanner.Config{Port: "/dev/ttyUSB0"})
	require.ErrorIs(t, err, away, "other ports are opened as before")
}

// No picture ends the agent.
func FuzzCamera(f *testing.F) {
	f.Add(uint64(1), []byte{3, 1, 4, 1, 5}, uint8(4))
	f.Add(uint64(2), []byte("PU:PIER-7:482913"), uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, pattern []byte, module uint8) {
		if len(pattern) == 0 {
			return
		}
		rnd, cell := rand.New(rand.NewPCG(seed, 1)), int(module%16)+1
		frame := make([]byte, scanner.FrameSize)
		for i := range frame {
			x, y := i%scanner.FrameWidth/cell, i/scanner.FrameWidth/cell
			b := pattern[(x/8+y*7)%len(pattern)]
			frame[i] = 255 * (b >> (x % 8) & 1)
			if rnd.IntN(64) == 0 {
				frame[i] ^= 0x80
			}
		}
		found, err := scanner.NewCamera().Show(frame)
		require.NoError(t, err)
		_ = found // it may be a symbol
	})
}
