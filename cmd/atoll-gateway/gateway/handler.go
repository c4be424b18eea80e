// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/cmd/atoll-gateway/internal/reload"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/coordinated"
	"github.com/atoll-dev/atoll/router/proxy"
	"github.com/atoll-dev/atoll/wal"
)

// newHandler makes the handler of requests: the router, the proxy to one region, and the API of all regions.
func (g *Gateway) newHandler(context.Context) error {
	limits := g.config.Limits
	// The proxy has its own limits, so a request that it admits must not wait here again. In addition to the requests to
	// one region, reads of all regions send it up to half as many.
	opts := router.Options{
		Budget: router.Budget{QPS: limits.RegionQPS, InFlight: limits.RequestsPerRegion * 3 / 2, Streams: 1500},
		Users:  g.authn.Users, Groups: g.authn.Groups, Observer: g.events.Router(nil),
	}
	operators := opts // without the cache, which has one owner
	if directory := g.config.Source.CacheDirectory; directory != "" {
		cache, err := router.OpenCache(filepath.Join(directory, "routes.json"))
		if err != nil {
			return fmt.Errorf("source.cacheDirectory: %w", err)
		}
		opts.Cache = cache
	}
	routes, err := router.New(g.ring, opts)
	if err != nil {
		return err
	}
	g.parts = append(g.parts, routes.Start, g.authn.Start, g.audit.Start, g.cert.files.Start)
	single, err := g.newProxy(routes, operators)
	if err != nil {
		return err
	}
	g.handler, err = g.newAPI(routes, single)
	return err
}

func (g *Gateway) newProxy(routes *router.Router, operators router.Options) (*proxy.Proxy, error) {
	limits := g.config.Limits
	opts := proxy.Options{
		Limits: proxy.Limits{
			Requests: limits.Requests, RequestsPerRegion: limits.RequestsPerRegion, RequestsPerCaller: limits.RequestsPerUser,
			StreamsPerCaller: limits.StreamsPerUser, Waiting: limits.Waiting, Wait: limits.Wait.Duration, Answer: limits.AnswerTimeout.Duration,
		},
		Origin:   func(origin string) bool { return slices.Contains(g.config.Serving.AllowedOrigins, origin) },
		Observer: &proxy.Observer{Served: g.served, Began: g.began},
	}
	if o := g.config.Operators; o != nil {
		peers, err := router.New(proxy.Peers(g.ring), operators)
		if err != nil {
			return nil, err
		}
		opts.Peers = peers
		opts.Operator = func(r *http.Request, _ router.Identity) bool {
			caller := recordOf(r.Context()).caller
			return caller != nil && caller.User != nil && slices.Contains(caller.User.GetGroups(), o.Group)
		}
	}
	return proxy.New(routes, g.authenticate, opts)
}

// newAPI makes the handler of all regions.
func (g *Gateway) newAPI(routes *router.Router, single *proxy.Proxy) (http.Handler, error) {
	sharing, err := aggregate.NewSharing(aggregate.SharingOptions{Bytes: g.config.Limits.SharedWatchBytes})
	if err != nil {
		return nil, err
	}
	g.parts = append(g.parts, sharing.Start)
	catalog, _ := g.config.Catalog()
	opts := apiserver.Options{Sharing: sharing, Catalog: catalog, Observer: g.events.Aggregate(nil)}
	if path := g.config.TokenKeysFile; path != "" {
		opts.Keys = aggregate.RandomKeyring()
		files, err := reload.New("keys of tokens", func(contents ...[]byte) error { return setKeys(opts.Keys, contents[0]) }, path)
		if err != nil {
			return nil, fmt.Errorf("tokenKeysFile: %w", err)
		}
		g.parts = append(g.parts, files.Start)
	}
	if f := g.config.Fanout; f != nil {
		if opts.Fanout, err = g.newFanout(f.LogFile); err != nil {
			return nil, fmt.Errorf("fanout.logFile: %w", err)
		}
	}
	return apiserver.New(routes, single, opts)
}

// setKeys replaces the keys by those of a file: one in base64 per line.
func setKeys(keyring *aggregate.Keyring, data []byte) error {
	var keys [][]byte
	for i, line := range bytes.Split(data, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil {
			return fmt.Errorf("line %d is not base64; make a key with: head -c 32 /dev/urandom | base64", i+1) //nolint:errorlint // err quotes the key
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return errors.New("the file has no key; make one with: head -c 32 /dev/urandom | base64")
	}
	return keyring.Replace(keys...)
}

// newFanout makes the coordinator of the operations on all peers.
func (g *Gateway) newFanout(path string) (apiserver.Fanout, error) {
	log, err := wal.Open(path, wal.Options{Observer: g.events.WAL(nil)})
	if err != nil {
		return nil, err
	}
	coordinator, err := fanout.New(g.ring, log, fanout.Options{Kinds: account.Kinds(), Observer: g.events.Fanout(nil)})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	g.closers = append(g.closers, log.Close)
	g.parts = append(g.parts, func(ctx context.Context) error {
		err := coordinator.Start(ctx)
		ending := context.WithoutCancel(ctx)
		return errors.Join(err, coordinator.Wait(ending), log.Close())
	})
	return coordinated.New(g.ring, coordinator)
}

// ServeHTTP serves one request, and reports it.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	record := newRecord(r)
	ctx := context.WithValue(r.Context(), recordKey{}, record)
	defer g.metrics.Began(record.longRunning)()
	if record.longRunning {
		var end func()
		ctx, end = g.streams.begin(ctx)
		defer end()
	}
	g.handler.ServeHTTP(w, r.WithContext(ctx))
}

// authenticate is the proxy's Authenticator. It notes the caller in the record of the request.
func (g *Gateway) authenticate(r *http.Request) (router.Identity, error) {
	id, caller, err := g.authn.Authenticate(r)
	recordOf(r.Context()).caller = caller
	if err != nil {
		logr.FromContextOrDiscard(r.Context()).V(1).Info("A caller was refused", "source", r.RemoteAddr, "reason", err.Error())
	}
	return id, err
}
