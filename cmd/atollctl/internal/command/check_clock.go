// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"
	"time"
)

const (
	maxSkew        = 5 * time.Second
	dateResolution = time.Second // of the header Date, which cuts fractions off
)

// judgeClock compares the header Date of a response with the local clock at half the round trip.
func judgeClock(b banner, err error) finding {
	if err != nil {
		return unknown(checkClock, err)
	}
	date, err := http.ParseTime(b.date)
	if err != nil {
		return warned(checkClock, "compare the clocks by hand", "the responses have no valid header Date, so the clock of the API server is not known")
	}
	trip := b.ended.Sub(b.began)
	tolerance := trip/2 + dateResolution/2
	skew := date.Add(dateResolution / 2).Sub(b.began.Add(trip / 2))
	direction := "ahead of"
	if skew < 0 {
		skew, direction = -skew, "behind"
	}
	if skew-tolerance <= maxSkew {
		return passed(checkClock, "no difference above %s to the clock here", maxSkew)
	}
	return warned(checkClock, "synchronize both clocks, for example with NTP",
		"the API server's clock is %s %s the clock here (+/- %s); Atoll's protocol does not depend on clocks, but certificates, tokens and leases do",
		skew.Round(time.Second), direction, tolerance.Round(time.Millisecond))
}
