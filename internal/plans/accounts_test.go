// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

var memberTypes = definitionsOf("accounts.catalog.kubecarrier.io", "regionclaims.kubecarrier.io", "serviceclusters.kubecarrier.io", "peersets.fanout.atoll.dev")

// accountOf returns the manifest of an Account with roles.
func accountOf(name string, roles ...string) string {
	return fmt.Sprintf("{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: %s}, "+
		"spec: {roles: [%s], subjects: [{kind: User, name: alice}]}}", name, strings.Join(roles, ", "))
}

// accounts is a scenario in which an operator creates, changes and deletes Accounts in a central
// plane that is no peer, and people delete the objects of an Account in a peer.
func accounts() perturb.Scenario {
	return perturb.Scenario{
		Servers: members(pair, "plane", "eu", "us"),
		Loops: []perturb.Loop{
			{Name: "replicator", Run: replicator("plane", pair)},
			{Name: "controller", Run: accountController(pair)},
		},
		Quiet: seldomSweeps + time.Minute,
		Script: []perturb.Step{
			put("make the Account acme", "plane", accountOf("acme", "Tenant")),
			put("make the Account loodse", "plane", accountOf("loodse", "Provider")),
			put("make acme a Provider, too", "plane", accountOf("acme", "Tenant", "Provider")),
			put("make acme a Tenant again", "plane", accountOf("acme", "Tenant")),
			deletes("delete the namespace of acme in eu", "eu", "{apiVersion: v1, kind: Namespace, metadata: {name: acme}}"),
			deletes("delete the copy of acme in us", "us", accountOf("acme")),
			deletes("delete the Account loodse", "plane", accountOf("loodse")),
			put("make the Account loodse again", "plane", accountOf("loodse", "Tenant")),
		},
		Beats:  notes,
		Differ: protocolDiffers("accounts.catalog.kubecarrier.io"),
	}
}

// With the defaults, of a minute, sweeps and notes at rest would take half of a run's time.
const (
	seldomSweeps = 5 * time.Minute
	seldomNotes  = 20 * time.Minute
)

// notes reports whether p is a write of a PeerSet. A Coordinator writes its notes there
// (fanout.Options.NoteEvery).
func notes(p perturb.Point) bool { return p.Resource == "peersets.fanout.atoll.dev" }

// pair are the members of the ring in most scenarios.
var pair = []region.PeerName{"eu", "us"}

// replicator returns a program with a Replicator for the central plane in a server, and the
// Coordinator that the Replicator uses.
func replicator(server string, peers []region.PeerName) func(context.Context, perturb.Access) error {
	return func(ctx context.Context, access perturb.Access) error {
		plane, err := region.APIFor(access(server))
		if err != nil {
			return err
		}
		return coordinate(ctx, access, peers, server, account.Kinds(), func(ring *region.Ring, c *fanout.Coordinator) ([]func(context.Context) error, error) {
			r, err := account.NewReplicator(plane, ring, c, account.Options{})
			if err != nil {
				return nil, err
			}
			return []func(context.Context) error{r.Start}, nil
		})
	}
}

// coordinate runs a program with a Coordinator over peers, and the loops that more returns. The
// Coordinator uses one of the logs that belong to the server in the argument beside.
func coordinate(ctx context.Context, access perturb.Access, peers []region.PeerName, beside string, kinds []fanout.Kind,
	more func(*region.Ring, *fanout.Coordinator) ([]func(context.Context) error, error),
) error {
	ring, err := ringOf(access, peers...)
	if err != nil {
		return err
	}
	log, giveBack, err := journalOf(access, beside)
	if err != nil {
		return err
	}
	defer giveBack()
	c, err := fanout.New(ring, log, fanout.Options{Kinds: kinds, Identity: "a program", SweepEvery: seldomSweeps, NoteEvery: seldomNotes})
	if err != nil {
		return err
	}
	parts, err := more(ring, c)
	if err != nil {
		return err
	}
	return startAll(ctx, append(parts, ring.Start, c.Start)...)
}

// accountController returns a program with a Controller of Accounts.
func accountController(peers []region.PeerName) func(context.Context, perturb.Access) error {
	return func(ctx context.Context, access perturb.Access) error {
		ring, err := ringOf(access, peers...)
		if err != nil {
			return err
		}
		c, err := account.NewController(ring, account.ControllerOptions{})
		if err != nil {
			return err
		}
		return startAll(ctx, ring.Start, c.Start)
	}
}

// members returns a func that makes a server of each name. The servers in peers are the members of
// a ring.
func members(peers []region.PeerName, names ...string) func() (map[string]perturb.Server, error) {
	types := map[string]func() (*regiontest.Definitions, error){}
	for _, name := range names {
		types[name] = memberTypes
	}
	made := serve(types, nil)
	return func() (map[string]perturb.Server, error) {
		servers, err := made()
		if err != nil {
			return nil, err
		}
		return servers, initialize(servers, peers)
	}
}
