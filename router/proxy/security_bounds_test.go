// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/atoll-dev/atoll/router"
)

// most is a bound above the number of requests in any test.
const most = 1 << 30

// unbounded removes all limits on the number of requests.
func unbounded(s *scene) {
	limits := Limits{
		Requests: most, RequestsPerRegion: most, RequestsPerCaller: most, Streams: most, StreamsPerRegion: most, StreamsPerCaller: most, Authentications: most,
	}
	s.proxy.requests, s.proxy.streams, s.proxy.authentications = limits.gates()
}

// patient raises all time limits to an hour. It also lowers the time that the test waits for an
// event.
func patient(s *scene) {
	s.proxy.limits.Body, s.proxy.limits.Answer, s.proxy.limits.Read = time.Hour, time.Hour, time.Hour
	s.patience = time.Second
}

// ends calls the func under, which starts requests. It returns an error if requests still take a place after
// s.patience.
func (s *scene) ends(under func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	if err := under(ctx); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		g := s.proxy.requests
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.busy.all > 0 {
			return fmt.Errorf("%d places are held", g.busy.all)
		}
		return nil
	})
}

// stall sends only the first line of a body, and waits for the answer.
func (s *scene) stall() error {
	body, in := io.Pipe()
	defer func() { _ = in.Close() }()
	defer context.AfterFunc(s.ctx, func() { _ = in.Close() })()
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.front.URL+euPath+"/upload", body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer alice")
	go func() { _, _ = io.WriteString(in, "a line\n") }()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

// reach repeats an attack until peer a reports one of its requests (peer.left). On a slow machine a short limit may end
// the attack before its request reaches the peer.
func (s *scene) reach(ctx context.Context, attack func() error) error {
	for {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = attack() // a client's error says nothing about the peer's request
		}()
		select {
		case <-s.a.left:
			return nil
		case <-ended:
		case <-ctx.Done():
			return errors.New("the peer's request goes on")
		}
	}
}

var boundChecks = []check{
	{
		name: "one caller takes all that a region may take", known: "API Priority and Fairness: one queue for all belongs to the caller who sends most",
		guard: "callers have shares of a region", opts: Options{Limits: Limits{RequestsPerRegion: 4, Waiting: -1}},
		without: func(s *scene) { s.proxy.flow = func(*http.Request, router.Identity) string { return "all alike" } },
		try: func(s *scene) error {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			for range 10 {
				go func() { _ = s.get(ctx, "/hang") }()
			}
			if err := s.a.await(ctx, 2); err != nil {
				return err
			}
			got, err := s.send("GET "+euPath+"/version HTTP/1.1", "Authorization: Bearer operator")
			if err == nil && got.code != http.StatusOK {
				err = fmt.Errorf("another caller is answered with %d", got.code)
			}
			return err
		},
	},
	{
		name: "one address takes all authentications", known: "a flood of unknown tokens is a flood of TokenReviews",
		guard: "addresses have shares of the authentications", opts: Options{Limits: Limits{Authentications: 4, Waiting: -1}}, without: unbounded,
		try: func(s *scene) error {
			begun, end := make(chan struct{}, 100), make(chan struct{})
			known := s.proxy.authenticate
			s.proxy.authenticate = func(r *http.Request) (router.Identity, error) {
				if bearer(r) == "flood" {
					begun <- struct{}{}
					<-end
				}
				return known(r)
			}
			codes := make(chan int, 3)
			for range 3 {
				go func() {
					got, err := s.send(version, "Authorization: Bearer flood")
					if err != nil {
						got = &answer{}
					}
					codes <- got.code
				}()
			}
			<-begun
			<-begun
			var err error
			select {
			case <-begun:
				err = errors.New("the authenticator is called three times at a time for one address that may have half of four")
			case code := <-codes:
				codes <- code
				if code != http.StatusTooManyRequests {
					err = fmt.Errorf("the answer is %d", code)
				}
			}
			close(end)
			for range 3 {
				<-codes
			}
			return err
		},
	},
	{
		name: "a body that stalls", known: "slow HTTP POST (R.U.D.Y.): a few hundred hold all places",
		guard: "a body must move", opts: Options{Limits: Limits{Body: 50 * time.Millisecond}}, without: patient,
		try: func(s *scene) error {
			return s.ends(func(ctx context.Context) error { return s.reach(ctx, s.stall) })
		},
	},
	{
		name: "a peer that never answers", known: "one region that hangs takes all connections of the proxy in front",
		guard: "a peer must go on", opts: Options{Limits: Limits{Answer: 50 * time.Millisecond}}, without: patient,
		try: func(s *scene) error {
			return s.ends(func(ctx context.Context) error {
				return s.reach(ctx, func() error { return s.get(s.ctx, "/hang") })
			})
		},
	},
	{
		name: "an answer that is not read", known: "slow read: a client with an empty window holds the connection to the backend",
		guard: "a client must take its answer", opts: Options{Limits: Limits{Read: 50 * time.Millisecond}}, without: patient,
		try: func(s *scene) error {
			return s.ends(func(context.Context) error {
				req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.front.URL+euPath+"/huge", http.NoBody)
				if err != nil {
					return err
				}
				req.Header.Set("Authorization", "Bearer alice")
				resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
				if err == nil {
					context.AfterFunc(s.ctx, func() { _ = resp.Body.Close() })
				}
				return err
			})
		},
	},
}
