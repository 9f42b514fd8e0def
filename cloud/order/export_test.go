package order

import "time"

// SetNow sets a service's clock.
func SetNow(s *Service, now func() time.Time) { s.now = now }
