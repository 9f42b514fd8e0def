package route

import (
	"context"
	"time"
)

// SetNow sets a service's clock.
func SetNow(s *Service, now func() time.Time) { s.now = now }

// TellDue tells of what is due at the service's time.
func TellDue(ctx context.Context, s *Service) error { return s.tellDue(ctx) }
