// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// TestErrorTexts compares the complete texts of the error types.
func TestErrorTexts(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	db := fanout.HeldError{Kind: serviceClusters, Key: key("acme", "db"), Holder: "us-east", Operation: "123", Stage: "Configured", Since: since, Coordinator: "host/7"}
	held := func(edit func(*fanout.HeldError)) error {
		e := db
		edit(&e)
		return &e
	}
	occupants := []fanout.Occupant{
		{Peer: "ap-south", Resource: schema.GroupResource{Group: "kubecarrier.io", Resource: "serviceclusters"}, Key: key("acme", "db")},
		{Peer: "us-east", Resource: schema.GroupResource{Group: "kubecarrier.io", Resource: "serviceclusters"}, Key: key("acme", "db")},
	}
	for want, err := range map[string]error{
		"ServiceCluster acme/db is held by peer us-east (Configured, operation 123) since 2026-01-02T03:04:05Z, taken by host/7: remove it first, or choose another name": &db,
		"ServiceCluster acme/db is held by peer us-east (Reserved, operation 123) since 2026-01-02T03:04:05Z, taken by host/7: it is not committed: try again when that operation has ended": held(func(e *fanout.HeldError) {
			e.Stage = "Reserved"
		}),
		"ServiceCluster acme/db is held by peer us-east (Removing, operation 123) since 2026-01-02T03:04:05Z, taken by host/7: it is being removed: try again when it is gone": held(func(e *fanout.HeldError) {
			e.Stage = "Removing"
		}),
		"ServiceCluster acme/db is held by peer us-east (applied there without a claim) since 2026-01-02T03:04:05Z: adopt it, delete it there, or choose another name": held(func(e *fanout.HeldError) {
			e.Operation, e.Stage, e.Coordinator = "", "", ""
		}),
		"Account acme was changed by another operation and is at revision 4: read it again and repeat the update": &fanout.ConflictError{
			Kind: accounts, Key: key("", "acme"), Revision: 4,
		},
		"Account acme was not removed: its namespace still holds serviceclusters acme/db in ap-south, serviceclusters acme/db in us-east: remove them first": &fanout.OccupiedError{
			Kind: accounts, Key: key("", "acme"), Occupants: occupants,
		},
		"Account acme is being removed and waits: its namespace still holds serviceclusters acme/db in ap-south: remove them, and it continues": &fanout.OccupiedError{
			Kind: accounts, Key: key("", "acme"), Occupants: occupants[:1], Committed: true,
		},
		"operation 123 is in doubt: no answer from us-east; it is settled by Recover: timeout": &fanout.InDoubtError{
			Operation: "123", Peers: []region.PeerName{"us-east"}, Settles: "it is settled by Recover", Err: errors.New("timeout"),
		},
		"operation 123 is of coordinator host/7, which holds ServiceCluster acme/db in peer us-east since 2026-01-02T03:04:05Z: to abort it all the same, set AbortOptions.Others: its operation ends without effect even if that coordinator is alive": &fanout.ForeignError{
			Operation: "123", Coordinator: "host/7", Kind: serviceClusters, Key: key("acme", "db"), Holder: "us-east", Since: since,
		},
	} {
		require.EqualError(t, err, want)
	}
}

// TestErrorTextsOfOperations tests the errors that operations return.
func TestErrorTextsOfOperations(t *testing.T) {
	const (
		operation = `[0-9a-f]{11}-[0-9a-f]{20}`
		stamp     = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	)
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Identity: "host/7"})
	acme := addAccount(t, c)
	add := func(ctx context.Context, target region.PeerName, name string) error {
		_, err := c.Add(ctx, newServiceCluster(acme, name), fanout.AddOptions{Target: target})
		return err
	}
	require.NoError(t, add(t.Context(), "us-east", "db"))
	_, err := clusters(t, r, "ap-south", acme).Create(t.Context(), newServiceCluster(acme, "applied"), metav1.CreateOptions{})
	require.NoError(t, err)

	for _, tc := range []struct {
		name string
		run  func(t *testing.T) error
		want string
	}{
		{"held", func(t *testing.T) error { t.Helper(); return add(t.Context(), "eu-west", "db") },
			`^ServiceCluster ` + acme + `/db is held by peer us-east \(Configured, operation ` + operation + `\) since ` + stamp + `, taken by host/7: remove it first, or choose another name$`},
		{"applied by a person", func(t *testing.T) error { t.Helper(); return add(t.Context(), "eu-west", "applied") },
			`^ServiceCluster ` + acme + `/applied is held by peer ap-south \(applied there without a claim\) since ` + stamp + `: adopt it, delete it there, or choose another name$`},
		{"an unreachable peer", func(t *testing.T) error {
			t.Helper()
			r.Partition("ap-south", true)
			defer r.Partition("ap-south", false)
			return add(t.Context(), "eu-west", "db-2")
		}, `^add ServiceCluster ` + acme + `/db-2: aborted: nothing is in effect \(operation ` + operation + `\): peer ap-south: .* ServiceCluster ` + acme + `/db-2: dial ap-south\.invalid: connection refused \(\d+ attempts since ` + stamp + `\): check that the API server runs, and its address in the kubeconfig$`},
		{"out of time", func(t *testing.T) (err error) {
			t.Helper()
			// In virtual time only a request that hangs takes time.
			synctest.Test(t, func(t *testing.T) {
				r := newRing(t)
				c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
				_, added := c.Add(t.Context(), newAccount(acme), fanout.AddOptions{})
				require.NoError(t, added)
				_, added = c.Add(t.Context(), newServiceCluster(acme, "db-1"), fanout.AddOptions{Target: "eu-west"}) // ap-south has accepted a guard, so the next add sends it no dry run
				require.NoError(t, added)
				r.Server("ap-south").Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Hang()})
				_, err = c.Add(within(t, 50*time.Millisecond), newServiceCluster(acme, "db-2"), fanout.AddOptions{Target: "eu-west"})
			})
			return err
		}, `^add ServiceCluster ` + acme + `/db-2: aborted: nothing is in effect \(operation ` + operation + `\): it was not committed in time: context deadline exceeded: it waited for peer ap-south: create ServiceCluster ` + acme + `/db-2: no answer in time: context deadline exceeded: check whether the API server is frozen or overloaded$`},
		{"no right", func(t *testing.T) error {
			t.Helper()
			r.Server("ap-south").Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Refuse(403)})
			defer r.Server("ap-south").Reset()
			return add(t.Context(), "eu-west", "db-2")
		}, `^add .*aborted: nothing is in effect \(operation ` + operation + `\): peer ap-south: create ServiceCluster ` + acme + `/db-2: right is missing: .*: the peer must grant the rights that "atollctl rbac" prints$`},
		{"no owner", func(t *testing.T) error {
			t.Helper()
			_, err := c.Add(t.Context(), newServiceCluster("default", "db"), fanout.AddOptions{Target: "eu-west"})
			return err
		}, `: its namespace has no active owner: accounts\.catalog\.kubecarrier\.io default must be Active in peer eu-west and is not there: add it first$`},
		{"in use", func(t *testing.T) error {
			t.Helper()
			_, err := c.Remove(t.Context(), accounts, key("", acme), fanout.RemoveOptions{})
			return err
		}, `^Account ` + acme + ` was not removed: its namespace still holds serviceclusters ` + acme + `/applied in ap-south, .*: remove them first$`},
		{"nothing to remove", func(t *testing.T) error {
			t.Helper()
			_, err := c.Remove(t.Context(), serviceClusters, key(acme, "none"), fanout.RemoveOptions{})
			return err
		}, `^remove ServiceCluster ` + acme + `/none: no peer holds it$`},
		{"another UID", func(t *testing.T) error {
			t.Helper()
			_, err := c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{UID: "other"})
			return err
		}, `^remove ServiceCluster ` + acme + `/db: no peer holds it under UID other: peer us-east holds it under UID [0-9a-f-]{36}$`},
		{"a member that is not configured", func(t *testing.T) error {
			t.Helper()
			few := coordinator(t, some(t, r, "eu-west", "us-east"), waltest.NewMemory(), fanout.Options{})
			_, err := few.Add(t.Context(), newAccount(unique("acme")), fanout.AddOptions{})
			return err
		}, `: configured peers and PeerSet differ: by the PeerSet of eu-west, ap-south is a member and not configured: configure exactly the peers that the PeerSets list$`},
		{"an unknown target", func(t *testing.T) error { t.Helper(); return add(t.Context(), "mars", "db") },
			`unknown peer "mars": the configured peers are ap-south, eu-west, us-east$`},
		{"a kind that is not configured", func(t *testing.T) error {
			t.Helper()
			_, err := c.Remove(t.Context(), schema.GroupKind{Kind: "Secret"}, key("a", "b"), fanout.RemoveOptions{})
			return err
		}, `^remove: kind is not in Options.Kinds: Secret \(known are ServiceCluster\.kubecarrier\.io, Account\.catalog\.kubecarrier\.io\)$`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.run(t)
			require.Error(t, err)
			require.Regexp(t, tc.want, err.Error())
		})
	}
}

// The log stores why an add was aborted: the error of Outcome, called on another coordinator with
// this log, contains the error of the add.
func TestTheLogRemembersWhy(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{Identity: "host/7"})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	op, told := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
	require.Error(t, told)
	_, err = coordinator(t, r, log, fanout.Options{}).Outcome(t.Context(), op.ID)
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.ErrorContains(t, err, told.Error())
}
