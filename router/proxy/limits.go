// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"time"
)

// Limits bound the use of a Proxy by each caller and region, so that no caller or region slows the others. A zero
// field has its default.
//
// A flow is the requests of one caller to one region. A flow may take at most as many places as it leaves free: one
// caller at most half of a region's places, one region or one caller at most half of Requests. If n flows want more
// than that, each of them gets 1/(n+1) of the places. Further requests wait in one queue per caller and region, and
// the queues take turns; a waiting request takes no place.
type Limits struct {
	Requests          int // concurrent requests that are not long-running; zero: 400
	RequestsPerRegion int // of these, to one region; half for requests about all regions; zero: 100, as router.Budget.InFlight
	RequestsPerCaller int // of these, by one caller; zero: 100

	Waiting int           // requests that wait for a place; zero: 1000; negative: no request may wait. Further requests get 429
	Wait    time.Duration // how long a request waits before it gets 429; zero: 10 s

	// Streams are long-running requests: watches, logs, exec, attach, port-forward, and requests through a proxy
	// subresource. They do not wait: streams above a limit get 429.
	Streams          int // zero: 4000
	StreamsPerRegion int // zero: 1000, as router.Budget.Streams
	StreamsPerCaller int // zero: 1000

	// Authentications are concurrent calls of the Authenticator. One address, or one IPv6 network of 64 bits, may
	// make at most as many calls as it leaves free. Further calls wait, as requests do. Zero: 100.
	Authentications int

	Body   time.Duration // how long a client may pause while it sends a body, before it gets 408; zero: 30 s
	Answer time.Duration // how long a peer may pause while it takes the request or answers, before 504; zero: 70 s, since an API server's own limit is 60 s
	Read   time.Duration // how long a client may pause while it reads an answer, before it is disconnected; zero: 1 minute
}

func (l *Limits) complete() error {
	for _, n := range []struct {
		name  string
		value *int
		zero  int
	}{
		{"Requests", &l.Requests, 400}, {"RequestsPerRegion", &l.RequestsPerRegion, 100}, {"RequestsPerCaller", &l.RequestsPerCaller, 100},
		{"Streams", &l.Streams, 4000}, {"StreamsPerRegion", &l.StreamsPerRegion, 1000}, {"StreamsPerCaller", &l.StreamsPerCaller, 1000},
		{"Authentications", &l.Authentications, 100},
	} {
		if *n.value < 0 {
			return fmt.Errorf("proxy: Options.Limits.%s is %d; want a positive number, or zero for %d", n.name, *n.value, n.zero)
		}
		if *n.value == 0 {
			*n.value = n.zero
		}
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"Wait", &l.Wait, 10 * time.Second}, {"Body", &l.Body, 30 * time.Second}, {"Answer", &l.Answer, 70 * time.Second}, {"Read", &l.Read, time.Minute},
	} {
		if *d.value < 0 {
			return fmt.Errorf("proxy: Options.Limits.%s is %s; want a positive duration, or zero for %s", d.name, *d.value, d.zero)
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if l.Waiting == 0 {
		l.Waiting = 1000
	}
	l.Waiting = max(l.Waiting, 0)
	return nil
}

// gates returns the gates for short requests, for long-running requests, and for authentications.
func (l *Limits) gates() (requests, streams, authentications *gate) {
	waiting := func(most int) bounds { return bounds{all: l.Waiting, region: most, caller: most} }
	requests = newGate(bounds{l.Requests, l.RequestsPerRegion, l.RequestsPerCaller}, waiting(l.Waiting), l.Wait)
	streams = newGate(bounds{l.Streams, l.StreamsPerRegion, l.StreamsPerCaller}, bounds{}, 0)
	authentications = newGate(bounds{l.Authentications, l.Authentications, l.Authentications}, waiting(l.Waiting), l.Wait)
	return requests, streams, authentications
}
