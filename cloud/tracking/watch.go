package tracking

import (
	"context"
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Watched is a parcel as its public page shows it, read once for all visitors who look
// at it. It is not changed after it was made.
type Watched struct {
	s      *Service
	parcel parcel
	link   string // secret of the parcel's link; "": there is none
	levels map[Level]PublicOutput
}

// Watch reads a parcel for visitors that Public has shown it to. It counts no lookup.
// Error: TRACKING_NOT_FOUND, also for a parcel that is no longer public.
func (s *Service) Watch(ctx context.Context, number string) (Watched, error) {
	p, err := s.read(ctx, cloud.Caller{}, number, codeNotFound, time.Now())
	if err != nil {
		return Watched{}, err
	}
	w := Watched{s: s, parcel: p}
	err = s.store.Look(ctx, func(v cloud.View) (err error) {
		if w.link, _, err = s.recipientOf(v, p.shipment); err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return err
		}
		w.levels = map[Level]PublicOutput{}
		for _, level := range []Level{LevelReduced, LevelPublic, LevelRecipient} {
			p.access = Access{Level: level, Verify: verifyNone}
			if w.levels[level], err = s.answer(v, cloud.Caller{}, p); err != nil {
				return err
			}
		}
		return nil
	})
	return w, err
}

// Public is what a visitor with a level sees, in a language.
func (w Watched) Public(lang string, level Level) PublicOutput {
	out := w.levels[level]
	out.word(w.parcel, lang)
	return out
}

// Proves reports whether a visitor's proof, the secret of the link or what Public gave as
// DayProof, is still good.
func (w Watched) Proves(proof string, now time.Time) bool {
	return w.s.links.Opens(w.link, proof, now)
}
