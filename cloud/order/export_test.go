package order

import (
	"time"

	"github.com/postern-io/postern/cloud"
)

// SetNow sets a service's clock.
func SetNow(s *Service, now func() time.Time) { s.now = now }

// SetNumber sets what numbers a service gives to orders.
func SetNumber(s *Service, number func(cloud.OrderID) string) { s.number = number }

// NumberOf is what SetNumber set.
func NumberOf(s *Service) func(cloud.OrderID) string { return s.number }
