// Package app tells the platform's apps how a business wants them: branding,
// what can be done there, home-screen shortcuts, and which versions still work.
//
// Nothing here is secret, and the business's code opens nothing: it only selects
// what is shown. The capabilities of an app follow from what the
// business has; the business may switch it off, never on. Safe for concurrent
// use.
package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Store is what this package needs of the database.
type Store interface {
	Look(ctx context.Context, fn func(cloud.View) error) error
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	FindBusinessByCode(ctx context.Context, code string) (cloud.Business, error)
	ListDevices(ctx context.Context, b cloud.BusinessID, after cloud.DeviceID, limit int) ([]cloud.Device, error)
}

// Config is what New needs.
type Config struct {
	Store Store
	// Feature says whether a family of operations is on for a business.
	Feature func(ctx context.Context, b cloud.BusinessID, family string) error
	// Languages are those that messages come in.
	Languages []string
	// Text is a sentence in a language.
	Text func(language, key string) string
}

// Service is the feature.
type Service struct{ cfg Config }

// New builds the service.
func New(cfg Config) *Service { return &Service{cfg} }

// kind is one of the platform's apps.
type kind struct {
	code, name, kind string
	actions          []string // that are usual
}

// kinds are the apps that there are.
var kinds = []kind{
	{"customer-app", "Parcels", "customer", []string{"send", "return", "lockers"}},
	{"driver-app", "Driver", "driver", nil},
}

// actions are the shortcuts that there can be (interface document 2.4).
var actions = []string{"send", "return", "store", "lockers", "luggage", "handover", "pay", "wallet"}

// Capabilities are what an app can do for a business now.
type Capabilities struct {
	Send          bool `json:"send"`
	Return        bool `json:"return"`
	Store         bool `json:"store"`
	Lockers       bool `json:"lockers"`
	Luggage       bool `json:"luggage"`
	Handover      bool `json:"handover"`
	Pay           bool `json:"pay"`
	Wallet        bool `json:"wallet"`
	OrderChat     bool `json:"order_chat"`
	LockerStorage bool `json:"locker_storage"`
	LockerShop    bool `json:"locker_shop"`
	LockerResale  bool `json:"locker_resale"`
	Reservations  bool `json:"reservations"`
	DriverShift   bool `json:"driver_shift"`
	RouteBoard    bool `json:"route_board"`
}

// switches are the capabilities that the platform has, by name. Capabilities that it
// has not are always off.
func (c *Capabilities) switches() map[string]*bool {
	return map[string]*bool{"send": &c.Send, "return": &c.Return, "lockers": &c.Lockers, "order_chat": &c.OrderChat}
}

// capabilities are what a business has and wants.
func (s *Service) capabilities(ctx context.Context, b cloud.Business, a cloud.App) (Capabilities, error) {
	devices, err := s.cfg.Store.ListDevices(ctx, b.ID, 0, 1)
	if err != nil {
		return Capabilities{}, err
	}
	var shown *cloud.Error
	chat := s.cfg.Feature(ctx, b.ID, "order_chat")
	if chat != nil && !errors.As(chat, &shown) {
		return Capabilities{}, chat
	}
	c := Capabilities{Send: true, Return: true, Lockers: len(devices) > 0, OrderChat: chat == nil}
	for name, on := range c.switches() {
		*on = *on && !slices.Contains(a.Off, name)
	}
	return c, nil
}

// find is a business's app of a code; one that it never set up is off.
func find(b cloud.Business, code string) cloud.App {
	i := slices.IndexFunc(b.Settings.Apps, func(a cloud.App) bool { return a.Code == code })
	if i < 0 {
		return cloud.App{Code: code}
	}
	return b.Settings.Apps[i]
}

func kindOf(code string) (kind, error) {
	for _, k := range kinds {
		if k.code == code {
			return k, nil
		}
	}
	return kind{}, cloud.E(cloud.NotFound, "APP_NOT_FOUND")
}

// stamp is now in the business's time zone.
func stamp(b cloud.Business) string { return *cloud.Stamp(time.Now(), b.Location()) }
