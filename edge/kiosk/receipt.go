package kiosk

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"rsc.io/qr"

	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/internal/localpage"
)

// receipt answers the receipt of an opening that has just ended, as a QR symbol; nothing for one
// that left and took nothing, and for one that ended a while ago.
func (k *Kiosk) receipt(w http.ResponseWriter, r *http.Request) {
	var in openingInput
	if !read(w, r, &in) {
		return
	}
	s := k.cfg.Loop.State()
	if _, ended := s.Ended[in.OpeningID]; !ended {
		refuse(w, http.StatusNotFound, "opening_id")
		return
	}
	found, ok := s.Receipt(in.OpeningID, k.cfg.Now())
	if !ok {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	text, link := k.receiptText(&s, in.OpeningID, found)
	code, err := qr.Encode(text, qr.M)
	if err != nil { // it is longer than a symbol holds
		w.WriteHeader(http.StatusNoContent)
		return
	}
	rows := make([]string, code.Size)
	for y := range rows {
		row := make([]byte, code.Size)
		for x := range row {
			row[x] = '0'
			if code.Black(x, y) {
				row[x] = '1'
			}
		}
		rows[y] = string(row)
	}
	localpage.Reply(w, http.StatusOK, struct {
		Text string   `json:"text"` // what the symbol says
		Link bool     `json:"link"` // it is the address of the parcel's page
		Rows []string `json:"rows"` // modules from top left, 1 is dark
	}{text, link, rows})
}

// receiptText is what a receipt says: where the cabinet knows its cloud and the one parcel, the
// address of the parcel's page; else device, doors, time and opening.
func (k *Kiosk) receiptText(s *locker.State, id string, r locker.Receipt) (text string, link bool) {
	if len(r.Packages) == 1 && k.cfg.CloudURL != "" {
		return k.cfg.CloudURL + "/track/" + url.PathEscape(r.Packages[0]), true
	}
	var doors []string
	for _, n := range r.Doors {
		doors = append(doors, ref(s, n).Label)
	}
	lines := []string{k.cfg.DeviceCode, strings.Join(doors, ", ")}
	if !r.At.IsZero() {
		lines = append(lines, r.At.Format(time.RFC3339))
	}
	return fmt.Sprint(strings.Join(lines, "\n"), "\n", id), false
}
