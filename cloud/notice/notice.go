// Package notice makes the words that drivers' apps are pushed: what happened to
// their orders and routes, in the language of the driver's account. It names
// orders by number and town and holds nothing else of a recipient, because it
// is shown on locked screens.
package notice

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// Types of pushes (devices 10.5).
const (
	OrderAssigned    = "order_assigned"
	OrderUnassigned  = "order_unassigned"
	OrderUpdated     = "order_updated"
	OrderCancelled   = "order_cancelled"
	OrderIntercepted = "order_intercepted"
	RouteAssigned    = "route_assigned"
	RouteUpdated     = "route_updated"
	RouteCancelled   = "route_cancelled"
	DoorsOpened      = "locker_doors_opened"
	DepositSettled   = "locker_deposit_settled"
)

// Types are all of them.
var Types = []string{OrderAssigned, OrderUnassigned, OrderUpdated, OrderCancelled, OrderIntercepted, RouteAssigned, RouteUpdated, RouteCancelled, DoorsOpened, DepositSettled}

// MaxBody is the length of a body, in characters.
const MaxBody = 120

// OfOrder are the pushes that tell a driver of an order: one, or none when there
// is no such driver.
func OfOrder(v cloud.View, now time.Time, kind string, driver cloud.AccountID, o cloud.Order) ([]cloud.Push, error) {
	parts := []string{o.Number}
	place := o.Recipient
	if o.Type != cloud.DeliveryOrder && !o.Collected {
		place = o.Sender
	}
	if place != nil {
		parts = append(parts, place.City)
	}
	p := cloud.Push{BusinessID: o.BusinessID, DriverID: driver, Type: kind, Body: body(parts), Data: cloud.PushData{OrderID: o.ID, RouteID: o.RouteID, TrackingNumber: o.Number}}
	return address(v, now, p)
}

// OfRoute are the pushes that tell a driver of a route, as OfOrder.
func OfRoute(v cloud.View, now time.Time, kind string, driver cloud.AccountID, x cloud.Route) ([]cloud.Push, error) {
	return address(v, now, cloud.Push{BusinessID: x.BusinessID, DriverID: driver, Type: kind, Body: body([]string{x.Name, x.Date}), Data: cloud.PushData{RouteID: x.ID}})
}

// address finds the driver, and the words in the driver's language.
func address(v cloud.View, now time.Time, p cloud.Push) ([]cloud.Push, error) {
	a, err := v.Account(p.DriverID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (a.BusinessID != p.BusinessID || a.Type != cloud.DriverAccount) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := v.Business(p.BusinessID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return nil, err
	}
	p.ID, p.At, p.Title = cloud.NewPushID(now), now, locale.Word(cmp.Or(a.Locale, b.Settings.Locale()), "push."+p.Type)
	return []cloud.Push{p}, nil
}

func body(parts []string) string {
	var said []string
	for _, s := range parts {
		if s = strings.TrimSpace(s); s != "" {
			said = append(said, s)
		}
	}
	text := []rune(strings.Join(said, " · "))
	return string(text[:min(len(text), MaxBody)])
}
