// Package diagnosis has the answers of cabinets to diagnoses, as files: JSON in gzip. A
// support bundle is a tar in gzip, and is not read here.
//
// Decoders take what a cabinet has sent, which may be anything: sizes are bounded, and texts
// have no control characters.
package diagnosis

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode"
	"unicode/utf8"
)

// MIME is the content type of each answer.
const MIME = "application/gzip"

// Bounds of an answer.
const (
	MaxBundle = 4 << 20 // bytes of a support bundle
	MaxView   = 1 << 20 // bytes of the other answers, as JSON and as a file

	maxBoards   = 100
	maxChannels = 64 // of a board
	maxText     = 200
	// maxCommas bounds the members and elements of an answer before they are read: each
	// may take a hundred times its bytes in memory.
	maxCommas = 64 << 10
	// MaxMoves bounds the moves that a board remembers.
	MaxMoves = 128
)

// Headers of the request that brings an answer up.
const (
	HeaderDigest    = "Content-Digest"    // RFC 9530, of SHA-256
	HeaderSignature = "Postern-Signature" // of a device with a key of its own, base64
)

// Digest is HeaderDigest's text for a file.
func Digest(sum [sha256.Size]byte) string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// ErrBad says that a file is no answer of its kind.
var ErrBad = errors.New("the answer is not of its form")

// Boards is the answer to board_view.
type Boards struct {
	At     time.Time `json:"at"` // by the cabinet's clock
	Boards []Board   `json:"boards"`
}

// Board is what a controller answers, by its newest poll.
type Board struct {
	Name    string `json:"name"`
	Line    string `json:"line"`
	Family  string `json:"family"`
	Address uint   `json:"address"`
	State   string `json:"state"` // online, offline, noisy
	// Counts since the line was laid out.
	Polls   uint64 `json:"polls"`
	Silent  uint64 `json:"silent"`  // without an answer
	Damaged uint64 `json:"damaged"` // answers with a wrong check or shape
	Pulses  uint64 `json:"pulses"`
	// AnsweredMS is how long before At it answered last; absent: never.
	AnsweredMS *int64 `json:"answered_ms_ago,omitempty"`
	// Error is the newest failure, and ErrorMS how long before At that was.
	Error    string    `json:"error,omitempty"`
	ErrorMS  *int64    `json:"error_ms_ago,omitempty"`
	Channels []Channel `json:"channels"`
}

// Channel is a channel of a board.
type Channel struct {
	Channel uint   `json:"channel"`        // from 1
	Door    uint   `json:"door,omitempty"` // number of the door on it, 0: none
	Switch  *bool  `json:"switch_bit,omitempty"`
	Item    *bool  `json:"item_bit,omitempty"`
	State   string `json:"state,omitempty"` // of the door, debounced: open, closed, unknown; empty without one
	Edges   uint64 `json:"edges"`           // raw switch changes
}

// Results of a test.
const (
	Opened    = "opened"
	NotOpened = "not_opened"
	NotSeen   = "not_seen" // it may have opened
)

// Test is the answer to channel_test: an opening by staff, and what its board read during it.
type Test struct {
	At        time.Time `json:"at"` // of the pulse's order, by the cabinet's clock
	OpeningID string    `json:"opening_id"`
	Door      uint      `json:"door"`
	Channel   uint      `json:"channel"`
	Result    string    `json:"result"`
	Pulses    uint      `json:"pulses"` // that were asked for
	// DelayMS is the time from the last pulse until the door was read open.
	DelayMS *int64 `json:"delay_ms,omitempty"`
	// Closed says that it was read closed again within the session, after OpenMS.
	Closed bool   `json:"closed"`
	OpenMS *int64 `json:"open_ms,omitempty"`
	Item   string `json:"item,omitempty"` // present or absent, at the end; empty: no sensor
	// Restarted says that the agent started in the middle of it, and knows no moves.
	Restarted bool   `json:"restarted,omitempty"`
	Moves     []Move `json:"moves"`
	Board     *Board `json:"board,omitempty"` // as it stands afterwards
}

// Kinds of moves.
const (
	Switch = "switch"
	Item   = "item"
)

// Move is a raw bit that changed between two polls.
type Move struct {
	AfterMS int64  `json:"after_ms"` // the order of the pulse
	Channel uint   `json:"channel"`
	Bit     string `json:"bit"` // Switch or Item
	Set     bool   `json:"set"`
}

// Encode makes a file of an answer.
func Encode(answer any) ([]byte, error) {
	raw, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if len(raw) > MaxView || out.Len() > MaxView {
		return nil, fmt.Errorf("the answer has %d bytes; %d are allowed", len(raw), MaxView)
	}
	return out.Bytes(), nil
}

func decode(file io.Reader, into any) error {
	r, err := gzip.NewReader(io.LimitReader(file, MaxView))
	if err != nil {
		return fmt.Errorf("%w: it is not gzip", ErrBad)
	}
	raw, err := io.ReadAll(io.LimitReader(r, MaxView+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: it is cut short or damaged", ErrBad)
	case len(raw) > MaxView:
		return fmt.Errorf("%w: it has more than %d bytes", ErrBad, MaxView)
	case bytes.Count(raw, []byte{','}) > maxCommas:
		return fmt.Errorf("%w: it has more members than an answer of its kind", ErrBad)
	case json.Unmarshal(raw, into) != nil:
		return fmt.Errorf("%w: it is not the JSON of its kind", ErrBad)
	}
	return nil
}

// DecodeBoards reads the answer to board_view. Error: ErrBad.
func DecodeBoards(file io.Reader) (b Boards, err error) {
	if err := decode(file, &b); err != nil {
		return Boards{}, err
	}
	if len(b.Boards) > maxBoards {
		return Boards{}, fmt.Errorf("%w: it has %d boards; %d are allowed", ErrBad, len(b.Boards), maxBoards)
	}
	for _, x := range b.Boards {
		if !x.isGood() {
			return Boards{}, fmt.Errorf("%w: a board has texts or channels beyond their bounds", ErrBad)
		}
	}
	return b, nil
}

// DecodeTest reads the answer to channel_test. Error: ErrBad.
func DecodeTest(file io.Reader) (t Test, err error) {
	if err := decode(file, &t); err != nil {
		return Test{}, err
	}
	good := areTexts(t.OpeningID, t.Result, t.Item) && len(t.Moves) <= MaxMoves && t.Channel <= maxChannels && (t.Board == nil || t.Board.isGood())
	for _, m := range t.Moves {
		good = good && areTexts(m.Bit) && m.Channel <= maxChannels
	}
	if !good {
		return Test{}, fmt.Errorf("%w: it has texts, moves or channels beyond their bounds", ErrBad)
	}
	return t, nil
}

func (b Board) isGood() bool {
	good := areTexts(b.Name, b.Line, b.Family, b.State, b.Error) && len(b.Channels) <= maxChannels
	for _, c := range b.Channels {
		good = good && c.Channel <= maxChannels && areTexts(c.State)
	}
	return good
}

func areTexts(all ...string) bool {
	for _, s := range all {
		if len(s) > maxText || !utf8.ValidString(s) {
			return false
		}
		for _, r := range s {
			if unicode.IsControl(r) {
				return false
			}
		}
	}
	return true
}

// Text is a text as answers may have it: without control characters, and not too long.
func Text(s string) string {
	out := make([]rune, 0, len(s))
	size := 0
	for _, r := range s {
		if unicode.IsControl(r) {
			r = ' '
		}
		if size += utf8.RuneLen(r); size > maxText {
			break
		}
		out = append(out, r)
	}
	return string(out)
}
