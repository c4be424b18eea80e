// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/shard"
)

const lease = 15 * time.Second

// newPlane returns a server that grants only the rights in doc.go.
func newPlane(t *testing.T) *regiontest.Server {
	t.Helper()
	s := regiontest.NewServer(regiontest.Options{Authorize: func(r regiontest.Request) error {
		verbs := []string{"create", "delete", "get", "list", "patch", "watch"}
		if r.Resource == leases.Resource && r.Namespace == namespace && slices.Contains(verbs, r.Verb) {
			return nil
		}
		return errors.New("not granted")
	}})
	t.Cleanup(s.Close)
	return s
}

func remaining(t *testing.T, s *regiontest.Server) []string {
	t.Helper()
	list, err := api(t, s, nil).Dynamic().Resource(leases).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	names := []string{}
	for _, l := range list.Items {
		names = append(names, l.GetName())
	}
	return names
}

func TestReplicasShareKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		all := several(t, s, 5)
		for _, n := range share(t, all...) {
			require.InDelta(t, 200, n, 40)
		}
		for _, r := range all {
			require.Equal(t, []string{"replica-0", "replica-1", "replica-2", "replica-3", "replica-4"}, r.Live())
		}
		before := owners(all...)
		told := all[0].reported()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, before, owners(all...))
		require.Equal(t, told, all[0].reported(), "nothing changed")
		for _, r := range s.Requests() {
			require.Contains(t, []int{0, 200, 201}, r.Code, "%+v", r)
		}
	})
}

// In the steady state a replica renews its Lease three times per duration and makes no other request except watches.
func TestReplicasWriteNoMoreThanTheyMust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		several(t, s, 3)
		s.Reset()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		verbs := map[string]int{}
		for _, r := range s.Requests() {
			verbs[r.Verb]++
		}
		require.Equal(t, 3*120, verbs["patch"])
		delete(verbs, "patch")
		require.LessOrEqual(t, verbs["watch"], 3*2)
		delete(verbs, "watch")
		require.Empty(t, verbs)
	})
}

func TestKeysOfADeadReplicaMoveWithinOneLease(t *testing.T) {
	for offset := range 6 {
		synctest.Test(t, func(t *testing.T) {
			s := newPlane(t)
			all := several(t, s, 4)
			before := owners(all...)
			time.Sleep(time.Minute + time.Duration(offset)*time.Second)
			all[3].die()
			require.Nil(t, all[3].Live())
			time.Sleep(lease)
			synctest.Wait()
			share(t, all[:3]...)
			after := owners(all[:3]...)
			for i := range after {
				if before[i][0] != "replica-3" {
					require.Equal(t, before[i], after[i], "only keys of the dead replica move")
				}
			}
			require.Contains(t, remaining(t, s), "work-replica-3")
		})
	}
}

func TestAReplicaThatStopsTakesItsLeaseAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		all := several(t, s, 3)
		time.Sleep(time.Minute)
		synctest.Wait()
		begun := time.Now()
		all[1].end()
		synctest.Wait()
		require.Zero(t, time.Since(begun))
		require.Equal(t, []string{"work-replica-0", "work-replica-2"}, remaining(t, s))
		share(t, all[0], all[2])
		require.ErrorContains(t, all[1].Start(t.Context()), "twice")
	})
}

func TestAReplicaThatJoinsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		all := several(t, s, 2)
		before, told := owners(all...), all[0].reported()
		all = append(all, start(t.Context(), t, s, shard.Options{Identity: "joining"}))
		synctest.Wait()
		share(t, all...)
		require.Equal(t, told+1, all[0].reported())
		for i, o := range owners(all...) {
			if o[0] != "joining" {
				require.Equal(t, before[i], o)
			}
		}
	})
}

// A paused replica owns nothing once the others have taken over, and gets its keys again when it resumes.
func TestAPausedReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		all := several(t, s, 3)
		before := owners(all...)
		time.Sleep(time.Minute)
		all[1].line.stop(false)
		for range 200 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			for i, o := range owners(all...) {
				require.LessOrEqual(t, len(o), 1, "key-%d", i)
			}
		}
		share(t, all[0], all[2])
		require.Nil(t, all[1].Live())
		time.Sleep(time.Minute)
		all[1].line.goOn()
		time.Sleep(lease / 3)
		synctest.Wait()
		share(t, all...)
		require.Equal(t, before, owners(all...))
	})
}

// A replica whose watch has silently stopped does not take over keys.
func TestABlindReplicaTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		all := several(t, s, 3)
		time.Sleep(time.Minute)
		synctest.Wait()
		before := owners(all...)
		all[1].line.stop(true)
		s.Reset()
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		require.Equal(t, before, owners(all...))
		require.LessOrEqual(t, len(s.Requests()), 3*48+5, "doubt does not cause continuous renewals")
		all[2].die()
		all[1].line.goOn()
		time.Sleep(lease)
		synctest.Wait()
		share(t, all[0], all[1])
	})
}

func TestThePlaneIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		failures := 0
		r := start(t.Context(), t, s, shard.Options{Identity: "watched", Observer: &shard.Observer{RenewFailed: func(err error) {
			require.ErrorContains(t, err, "shard: renew Lease kube-public/work-watched")
			failures++
		}}})
		all := append(several(t, s, 2), r)
		before := owners(all...)
		s.Partition(true)
		time.Sleep(lease - time.Second/2 - lease/3)
		require.Equal(t, before, owners(all...), "within the lease nothing changes")
		time.Sleep(lease)
		for _, o := range owners(all...) {
			require.Empty(t, o)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Positive(t, failures)
		told := r.reported()
		s.Partition(false)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Equal(t, before, owners(all...))
		require.Greater(t, r.reported(), told)
	})
}

// foreign writes the Lease of a replica outside the test, with any renewTime.
func foreign(t *testing.T, s *regiontest.Server, name string, renewed time.Time) {
	t.Helper()
	l := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{"name": "work-" + name, "namespace": namespace, "labels": map[string]any{shard.Label: group}},
		"spec": map[string]any{"holderIdentity": name, "leaseDurationSeconds": int64(15),
			"renewTime": renewed.UTC().Format(metav1.RFC3339Micro)},
	}}
	_, err := api(t, s, nil).Dynamic().Resource(leases).Namespace(namespace).
		Apply(t.Context(), l.GetName(), l, metav1.ApplyOptions{FieldManager: "foreign", Force: true})
	require.NoError(t, err)
}

func TestClocksAreNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		foreign(t, s, "future", time.Now().AddDate(100, 0, 0))
		r := several(t, s, 1)[0]
		for i := range 20 {
			foreign(t, s, "past", time.Unix(int64(i), 0))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.Contains(t, r.Live(), "past")
			require.Equal(t, i < 1, slices.Contains(r.Live(), "future"), "after %v", 10*time.Second*time.Duration(i+1))
		}
	})
}

func TestLeasesOfTheDeadAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		for i := range 8 {
			foreign(t, s, fmt.Sprintf("dead-%d", i), time.Now())
		}
		several(t, s, 3)
		time.Sleep(10*lease - time.Second)
		require.Len(t, remaining(t, s), 11)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, remaining(t, s), 3)
		deletions := 0
		for _, r := range s.Requests() {
			if r.Verb == "delete" {
				deletions++
			}
		}
		require.Equal(t, 8, deletions, "each by one replica")
	})
}

func TestLeasesThatAreNoneOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		client := api(t, s, nil).Dynamic().Resource(leases).Namespace(namespace)
		for name, label := range map[string]string{"work-other": "another-group", "unprefixed": group} {
			l := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
			l.SetName(name)
			l.SetLabels(map[string]string{shard.Label: label})
			_, err := client.Create(t.Context(), l, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		l := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": map[string]any{}}}
		l.SetName("work-empty")
		l.SetLabels(map[string]string{shard.Label: group})
		_, err := client.Create(t.Context(), l, metav1.CreateOptions{})
		require.NoError(t, err)
		r := several(t, s, 1)[0]
		require.Equal(t, []string{"empty", "replica-0"}, r.Live())
		time.Sleep(lease)
		synctest.Wait()
		require.Equal(t, []string{"replica-0"}, r.Live(), "a Lease without a duration has the default")
	})
}

func TestOneIdentityTwiceIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		var logged []string
		ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
		first := start(ctx, t, s, shard.Options{Identity: "same"})
		synctest.Wait()
		second := start(t.Context(), t, s, shard.Options{Identity: "same"})
		time.Sleep(time.Minute)
		synctest.Wait()
		require.True(t, slices.ContainsFunc(logged, func(l string) bool { return strings.Contains(l, "Another replica has the same identity") }), "%v", logged)
		first.end()
		require.Equal(t, []string{"same"}, second.Live())
		require.True(t, second.Owns("key"))
	})
}

func TestObserverSeesWhoShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPlane(t)
		var seen []string
		r := start(t.Context(), t, s, shard.Options{Identity: "a", Lease: 3 * time.Second, Observer: &shard.Observer{
			Changed: func(generation uint64, live []string) { seen = append(seen, fmt.Sprint(generation, live)) },
		}})
		synctest.Wait()
		other := start(t.Context(), t, s, shard.Options{Identity: "b"})
		synctest.Wait()
		other.end()
		synctest.Wait()
		r.end()
		require.Equal(t, []string{"1 [a]", "2 [a b]", "3 [a]", "4 []"}, seen)
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	s := newPlane(t)
	plane := api(t, s, nil)
	_, err := shard.New(nil, namespace, group, shard.Options{})
	require.ErrorContains(t, err, "plane is nil")
	for want, err := range map[string]error{
		"the namespace is \"\"":             second(shard.New(plane, "", group, shard.Options{})),
		"the group is \"My Group\"":         second(shard.New(plane, namespace, "My Group", shard.Options{})),
		"Options.Identity is \"Me\"":        second(shard.New(plane, namespace, group, shard.Options{Identity: "Me"})),
		"Options.Lease is 1ms":              second(shard.New(plane, namespace, group, shard.Options{Lease: time.Millisecond})),
		"Options.Lease is -1s":              second(shard.New(plane, namespace, group, shard.Options{Lease: -time.Second})),
		"which cannot be part of a Lease's": second(shard.New(plane, namespace, group, shard.Options{Identity: strings.Repeat("x", 250)})),
	} {
		require.ErrorContains(t, err, want)
	}
	a, err := shard.New(plane, namespace, group, shard.Options{})
	require.NoError(t, err)
	b, err := shard.New(plane, namespace, group, shard.Options{})
	require.NoError(t, err)
	require.NotEqual(t, a.Identity(), b.Identity())
	require.False(t, a.Owns("key"))
	require.Nil(t, a.Live())
	require.Empty(t, s.Requests())
}

func second[T any](_ T, err error) error { return err }
