// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

var _ cache.ListerWatcherWithContext = (*source)(nil)

const (
	// listTimeout bounds one page: an API server's own limit for a request is a minute.
	listTimeout = 90 * time.Second
	// openTimeout bounds the wait for the response of a watch: some proxies delay it until the
	// first event, which is a bookmark after a minute.
	openTimeout = 90 * time.Second
)

// source lists and watches for a reflector and reports the results to freshness.
type source struct {
	client    dynamic.ResourceInterface
	name      string
	opts      ObjectsOptions
	freshness *freshness
	requests

	mu     sync.Mutex
	broken bool // the last watch failed, or ended before its time limit
}

// IsWatchListSemanticsUnSupported makes reflectors list in pages instead of streaming. With
// stripped objects, pages cost little more than a stream, and they work with every server. A failed
// attempt is one failed request, and the backoff after it ends with the context.
func (*source) IsWatchListSemanticsUnSupported() bool { return true }

func (s *source) List(opts metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), opts)
}

func (s *source) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), opts)
}

func (s *source) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if !s.begin() {
		return nil, context.Canceled
	}
	defer s.wg.Done()
	pageCtx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	opts.LabelSelector, opts.FieldSelector = s.opts.Labels, s.opts.Fields
	// With a resourceVersion the server may answer with an older state. After a restore from a
	// backup the version may refer to lost state.
	opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	list, err := s.client.List(pageCtx, opts)
	if err != nil {
		// If a continue token has expired, the reflector lists again at once. That is no failure.
		if late := opts.Continue != "" && apierrors.IsResourceExpired(err); !late && ctx.Err() == nil {
			s.freshness.failed(fmt.Errorf("failed to list %s: %w", s.name, err))
		}
		return nil, err
	}
	if s.opts.Strip != nil {
		for i := range list.Items {
			s.opts.Strip(&list.Items[i])
		}
	}
	if list.GetContinue() == "" {
		s.setBroken(false)
	}
	return list, nil
}

func (s *source) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if s.isBroken() {
		return nil, apierrors.NewResourceExpired("the last watch ended before its time")
	}
	limit := time.Duration(0)
	if opts.TimeoutSeconds != nil {
		limit = time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	opts.LabelSelector, opts.FieldSelector = s.opts.Labels, s.opts.Fields
	watchCtx, cancel := context.WithCancel(ctx)
	tooLong := time.AfterFunc(openTimeout, cancel)
	begun := time.Now()
	events, err := s.client.Watch(watchCtx, opts)
	if !tooLong.Stop() {
		if err == nil {
			events.Stop()
		}
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		err = fmt.Errorf("failed to watch %s: %w", s.name, err)
		s.setBroken(true)
		if ctx.Err() == nil {
			s.freshness.watchFailed(err)
		}
		return nil, err
	}
	s.freshness.opened()
	return &stream{Interface: events, closed: func() {
		cancel()
		s.setBroken(time.Since(begun) < limit)
		s.freshness.closed()
	}}, nil
}

func (s *source) isBroken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

func (s *source) setBroken(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// stream is a watch that reports its end: a reflector stops each watch that has ended.
type stream struct {
	watch.Interface
	once   sync.Once
	closed func()
}

func (s *stream) Stop() {
	s.Interface.Stop()
	s.once.Do(s.closed)
}
