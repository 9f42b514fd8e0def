package cloud

import "time"

// EndpointTally is what became of the attempts to one receiver that ended
// within one hour, or a part of it.
type EndpointTally struct {
	EndpointID         EndpointID
	URL                string // what was tried; "" when the caller does not care whether it still is the receiver's
	Hour               int64  // since 1970
	Attempts, Failures int
	SucceededAt        time.Time // last success; zero when there was none
	FailedAt           time.Time // last failure; zero when there was none
	FailingSince       time.Time // first failure after the last success
	Streak             int       // failures after the last success
}

// EndpointHealth is how a receiver is doing.
type EndpointHealth struct {
	EndpointID   EndpointID
	SucceededAt  time.Time // last success; zero when there was none yet
	FailedAt     time.Time
	FailingSince time.Time // first failure after the last success
	Failures     int       // since the last success
	Warned       int       // percent of the way to a pause that was last warned of
}

// EndpointReport is a receiver's health as its owner sees it.
type EndpointReport struct {
	EndpointHealth
	Attempts24h, Failures24h   int
	AttemptsHour, FailuresHour int // of this hour and the last
	Waiting                    int // deliveries that are not finished, paused ones too
}

// EndpointCount counts receivers of one status, and secrets of one channel that
// overlap.
type EndpointCount struct {
	Label string
	Count int64
}
