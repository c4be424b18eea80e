// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// stage is an API server and a running Recorder.
type stage struct {
	t      *testing.T
	server *regiontest.Server
	api    region.API
	r      *Recorder
}

func inStage(t *testing.T, opts Options, f func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, server: regiontest.NewServer(regiontest.Options{}), r: New(opts)}
		t.Cleanup(s.server.Close)
		var err error
		s.api, err = region.APIFor(s.server.Config())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = s.r.Start(ctx) })
		defer wg.Wait()
		defer cancel()
		synctest.Wait()
		f(t, s)
	})
}

// passes lets d pass and waits until all goroutines are idle.
func passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// events returns the Events in the namespace default.
func (s *stage) events() []corev1.Event {
	s.t.Helper()
	list, err := s.api.Dynamic().Resource(resource).Namespace("default").List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	all := make([]corev1.Event, len(list.Items))
	for i := range list.Items {
		require.NoError(s.t, runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &all[i]))
	}
	return all
}

func (s *stage) writes() (n int) {
	for _, r := range s.server.Requests() {
		if r.Verb == "create" || r.Verb == "patch" {
			n++
		}
	}
	return n
}

func of(name string) Event {
	return Event{
		About: Object{APIVersion: "master.kubecarrier.io/v1alpha1", Kind: "Peer", Name: name, UID: types.UID("uid-" + name)},
		Type:  Warning, Reason: "Unreachable", Message: "no answer",
	}
}

func TestAnEventIsWhatKubectlShows(t *testing.T) {
	inStage(t, Options{Controller: "test", Instance: "a"}, func(t *testing.T, s *stage) {
		now := time.Now()
		s.r.Record(s.api, of("eu"))
		passes(time.Second)
		all := s.events()
		require.Len(t, all, 1)
		e := all[0]
		require.Equal(t, corev1.ObjectReference{
			APIVersion: "master.kubecarrier.io/v1alpha1", Kind: "Peer", Name: "eu", UID: "uid-eu",
		}, e.InvolvedObject)
		require.Equal(t, "Warning Unreachable: no answer", fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
		require.EqualValues(t, 1, e.Count)
		require.True(t, e.FirstTimestamp.Time.Equal(now), e.FirstTimestamp)
		require.Equal(t, corev1.EventSource{Component: "test", Host: "a"}, e.Source)
	})
}

// TestRepetitionsAreCounted: repeated Events are counted in one Event object, which is written at
// most once a minute.
func TestRepetitionsAreCounted(t *testing.T) {
	inStage(t, Options{}, func(t *testing.T, s *stage) {
		e := of("eu")
		for i := range 600 { // for ten minutes
			e.Message = fmt.Sprintf("attempt %d", i)
			s.r.Record(s.api, e)
			time.Sleep(time.Second)
		}
		passes(2 * time.Minute)
		all := s.events()
		require.Len(t, all, 1)
		require.EqualValues(t, 600, all[0].Count)
		require.Equal(t, "attempt 599", all[0].Message)
		require.LessOrEqual(t, s.writes(), 12)

		before := s.writes()
		passes(time.Hour)
		require.Equal(t, before, s.writes())
		require.Empty(t, s.r.series, "an ended series is deleted")
		s.r.Record(s.api, e)
		passes(time.Second)
		require.Len(t, s.events(), 2, "a new series")
	})
}

// TestThereIsNoStorm: if 1000 objects have an Event at once, a Recorder with a burst of 20 writes
// 20 Events and drops the others. Ten seconds later it writes a new Event.
func TestThereIsNoStorm(t *testing.T) {
	inStage(t, Options{Burst: 20}, func(t *testing.T, s *stage) {
		for i := range 1000 {
			s.r.Record(s.api, of(fmt.Sprintf("peer-%d", i)))
		}
		passes(time.Second)
		require.Len(t, s.events(), 20)
		require.EqualValues(t, 980, s.r.Dropped())
		passes(10 * time.Second)
		s.r.Record(s.api, of("later"))
		passes(time.Second)
		require.Len(t, s.events(), 21)
	})
}

func TestWhatCannotBeWrittenIsDropped(t *testing.T) {
	inStage(t, Options{}, func(t *testing.T, s *stage) {
		s.server.Partition(true)
		s.r.Record(s.api, of("eu"))
		passes(time.Minute)
		require.EqualValues(t, 1, s.r.Dropped())
		s.server.Partition(false)
		passes(time.Hour)
		require.Empty(t, s.events())
		s.r.Record(s.api, of("eu"))
		passes(time.Second)
		require.Len(t, s.events(), 1)

		// An Event that has expired is created again.
		all := s.events()
		require.NoError(t, s.api.Dynamic().Resource(resource).Namespace("default").Delete(t.Context(), all[0].Name, metav1.DeleteOptions{}))
		passes(2 * time.Minute)
		s.r.Record(s.api, of("eu"))
		passes(2 * time.Minute)
		all = s.events()
		require.Len(t, all, 1)
		require.EqualValues(t, 2, all[0].Count)

		// An Event in a namespace that does not exist is dropped.
		lost := of("x")
		lost.About.Namespace = "nowhere"
		s.r.Record(s.api, lost)
		passes(time.Second)
		require.EqualValues(t, 2, s.r.Dropped())
	})
}

func TestLongNamesAndMessages(t *testing.T) {
	inStage(t, Options{}, func(t *testing.T, s *stage) {
		e := of(strings.Repeat("a.", 126) + "a")
		e.Message = strings.Repeat("é", 2000)
		s.r.Record(s.api, e)
		passes(time.Second)
		all := s.events()
		require.Len(t, all, 1)
		require.LessOrEqual(t, len(all[0].Name), 253)
		require.LessOrEqual(t, len(all[0].Message), longest)
		require.Equal(t, e.About.Name, all[0].InvolvedObject.Name)
	})
}

func TestNobodyIsHeldUp(t *testing.T) {
	var none *Recorder
	none.Record(nil, of("eu"))
	require.Zero(t, none.Dropped())
	require.Nil(t, none.Peers(nil, nil))
	require.Nil(t, none.Claims(nil, nil))
	require.Nil(t, none.Accounts(nil, nil, nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, none.Start(ctx))

	r := New(Options{})
	s := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(s.Close)
	api, err := region.APIFor(s.Config())
	require.NoError(t, err)
	r.Record(api, of("eu"))
	require.Empty(t, r.series, "it does not run")
	require.NoError(t, r.Start(ctx))
	require.ErrorContains(t, r.Start(ctx), "twice")
	r.Record(api, of("eu"))
	require.Empty(t, r.series, "it no longer runs")
	objects, err := s.Objects(schema.GroupResource{Resource: "events"})
	require.NoError(t, err)
	require.Empty(t, objects)
}

// Emit gets each Event first. The Recorder writes only those that Emit does not take.
func TestEmit(t *testing.T) {
	var got []string
	emit := func(_ region.API, e Event) bool {
		got = append(got, e.About.Name)
		return e.About.Name == "eu"
	}
	inStage(t, Options{Emit: emit}, func(t *testing.T, s *stage) {
		s.r.Record(s.api, of("eu"))
		s.r.Record(s.api, of("us"))
		passes(time.Second)
		require.Equal(t, []string{"eu", "us"}, got)
		written := s.events()
		require.Len(t, written, 1)
		require.Equal(t, "us", written[0].InvolvedObject.Name)
		require.Zero(t, s.r.Dropped())
	})
}
