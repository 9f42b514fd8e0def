package page

import (
	"context"
	"errors"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
)

// dropoffPage is a delivery as the sender sees it who brings it.
type dropoffPage struct {
	frame
	locker.DropoffBody
	Action  string        // address of its form, with the language that was asked for
	Code    string        // in two parts, "" while there is none that works
	QR      template.HTML // of the code
	By      *moment       // until when it can be brought
	Said    string        // how far it has come; "" while it is to be brought
	Tone    string        // of that: good, or none
	Numbers string        // of its packages
	Hours   []dayHours    // nil: always open
	Problem string        // with the cancellation that was asked for
}

// dayHours are the opening hours of one weekday.
type dayHours struct{ Day, Hours string }

// dropoffWords say how far a delivery has come for its sender.
var dropoffWords = map[locker.DropoffState]string{locker.DropoffBrought: "return.waits", locker.DropoffCollected: "return.collected", locker.DropoffCancelled: "dropoff.cancelled", locker.DropoffTooLate: "dropoff.late", locker.DropoffFailed: "dropoff.failed"}

// dropoff shows a delivery to its sender. The link's secret leaves the address first.
func (p trackingPages) dropoff(ctx *fasthttp.RequestCtx) {
	if key := ctx.QueryArgs().Peek("k"); len(key) > 0 {
		p.enter(ctx, string(key))
		return
	}
	c, cancel := visit(ctx)
	defer cancel()
	p.showDropoff(c, ctx, nil)
}

// dropoffPost cancels a delivery for its sender.
func (p trackingPages) dropoffPost(ctx *fasthttp.RequestCtx) {
	if !sameSite(ctx) {
		p.message(ctx, fasthttp.StatusForbidden, "trouble.title", "console.expired")
		return
	}
	if string(ctx.PostArgs().Peek("do")) != "cancel" {
		p.message(ctx, fasthttp.StatusBadRequest, "trouble.title", "oops.body")
		return
	}
	c, cancel := visitFor(ctx, openTime)
	defer cancel()
	f := p.frame(ctx, "dropoff.title")
	if _, err := runByLink[locker.DropoffOutput](c, ctx, p.kit, f.Lang, "customer.dropoffs.cancel", map[string]any{"delivery_number": dropoffNumber(ctx)}); err != nil {
		p.showDropoff(c, ctx, err)
		return
	}
	seeOther(ctx, withLanguage(ctx, f.Path))
}

// dropoffNumber is the number of the delivery that a page is about.
func dropoffNumber(ctx *fasthttp.RequestCtx) string {
	raw, _ := ctx.UserValue("number").(string)
	number, err := url.PathUnescape(raw)
	if err != nil {
		return ""
	}
	return number
}

// showDropoff reads and shows a delivery; tried is why its cancellation failed.
func (p trackingPages) showDropoff(c context.Context, ctx *fasthttp.RequestCtx, tried error) {
	f := p.frame(ctx, "dropoff.title")
	out, err := runByLink[locker.DropoffOutput](c, ctx, p.kit, f.Lang, "customer.dropoffs.find", map[string]any{"delivery_number": dropoffNumber(ctx)})
	var shown *cloud.Error
	switch {
	case errors.As(err, &shown) && shown.Kind == cloud.Limited:
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(shown.RetryAfter))
		p.message(ctx, fasthttp.StatusTooManyRequests, "trouble.title", "dropoff.often")
		return
	case errors.As(err, &shown) && (shown.Kind == cloud.NotFound || shown.Kind == cloud.Invalid):
		p.message(ctx, fasthttp.StatusNotFound, "dropoff.missing", "dropoff.again")
		return
	case err != nil:
		p.trouble(ctx, err)
		return
	}
	view, err := dropoffView(f, out.Dropoff)
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	view.Action, view.Problem = withLanguage(ctx, f.Path), p.whyNotCancelled(ctx, f, tried)
	p.show(ctx, statusFor(tried), "dropoff.html", view)
}

// dropoffView is what the page shows of an answer.
func dropoffView(f frame, b locker.DropoffBody) (v dropoffPage, err error) {
	if zone, err := time.LoadLocation(b.Timezone); err == nil {
		f.Zone = zone
	}
	v = dropoffPage{frame: f, DropoffBody: b, By: f.stamped(b.BringBefore), Numbers: strings.Join(b.TrackingNumbers, ", ")}
	if words := dropoffWords[b.State]; words != "" {
		v.Said = f.T(words)
	}
	if b.State == locker.DropoffBrought || b.State == locker.DropoffCollected {
		v.Tone = "good"
	}
	if b.DropoffCode != nil {
		v.Code = halves(*b.DropoffCode)
		if v.QR, err = drawQR(*b.DropoffQR, "scan"); err != nil {
			return v, err
		}
	}
	if b.OpeningHours != nil {
		v.Hours = weekHours(f, *b.OpeningHours)
	}
	return v, nil
}

// weekHours are opening hours from Monday to Sunday.
func weekHours(f frame, hours []cloud.OpeningHours) []dayHours {
	week := make([]dayHours, 0, 7)
	for i := range 7 {
		day := time.Weekday((i + 1) % 7)
		var parts []string
		for _, h := range hours {
			if h.Day == int(day) {
				parts = append(parts, h.Open+"–"+h.Close)
			}
		}
		if parts == nil {
			parts = []string{f.T("dropoff.closed")}
		}
		week = append(week, dayHours{locale.Weekday(f.Lang, day), strings.Join(parts, ", ")})
	}
	return week
}

// senderWords are errors of a cancellation in words for senders.
var senderWords = map[string]string{"DELIVERY_STATE_CONFLICT": "dropoff.changed", "DEVICE_OFFLINE": "dropoff.busy", "DEVICE_TIMEOUT": "dropoff.busy", "RATE_LIMITED": "dropoff.often"}

// whyNotCancelled is why a delivery was not cancelled, in words for its sender.
func (p trackingPages) whyNotCancelled(ctx *fasthttp.RequestCtx, f frame, err error) string {
	var shown *cloud.Error
	if !errors.As(err, &shown) {
		return p.why(f, err)
	}
	if shown.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(shown.RetryAfter))
	}
	if words := senderWords[shown.Code]; words != "" {
		return f.T(words)
	}
	return p.why(f, err)
}
