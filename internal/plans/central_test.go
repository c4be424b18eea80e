// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

var (
	planeTypes = definitionsOf("peers.master.kubecarrier.io", "kubecarriers.operator.kubecarrier.io", "regionclaims.kubecarrier.io", "serviceclusters.kubecarrier.io")
	peerTypes  = definitionsOf("kubecarriers.operator.kubecarrier.io", "regionclaims.kubecarrier.io", "serviceclusters.kubecarrier.io")
)

// carrier returns the manifest of the KubeCarrier in a plane, which makes the installation there a
// master or not.
func carrier(master bool) string {
	return fmt.Sprintf("{apiVersion: operator.kubecarrier.io/v1alpha1, kind: KubeCarrier, metadata: {name: kubecarrier}, spec: {master: %t}}", master)
}

// peerObject returns the manifest of a Peer. Its Secret has the same name as the Peer.
func peerObject(name string) string {
	return fmt.Sprintf("{apiVersion: master.kubecarrier.io/v1alpha1, kind: Peer, metadata: {name: %s}, spec: {kubeconfigSecret: {name: %s}}}", name, name)
}

// centralPlane is a scenario in which an operator makes an installation a master, registers
// clusters, changes and deletes their Secrets, and removes a cluster and adds it again. Meanwhile
// providers claim a region in the clusters.
func centralPlane() perturb.Scenario {
	const system = central.Namespace
	return perturb.Scenario{
		Servers: serve(map[string]func() (*regiontest.Definitions, error){"plane": planeTypes, "eu": peerTypes, "us": peerTypes},
			map[string][]string{"plane": {kubecarrier, loodse}, "eu": {loodse}, "us": {loodse}}),
		Loops: []perturb.Loop{{Name: "master", Run: master}},
		// A peer that left keeps its regions for a minute (claim.Options.Departure).
		Quiet: 2 * time.Minute,
		Script: []perturb.Step{
			put("make a master", "plane", carrier(true)),
			secret("write the Secret eu", "plane", system, "eu", "eu", "first"),
			put("register eu", "plane", peerObject("eu")),
			put("register us", "plane", peerObject("us")),
			secret("write the Secret us", "plane", system, "us", "us", "first"),
			put("eu claims a", "eu", claimOfA),
			secret("change the Secret eu", "plane", system, "eu", "eu", "second"),
			put("us claims a", "us", claimOfA),
			deletes("take eu out", "plane", peerObject("eu")),
			put("register eu again", "plane", peerObject("eu")),
			deletes("eu gives a up", "eu", claimOfA),
			deletes("remove the Secret us", "plane", "{apiVersion: v1, kind: Secret, metadata: {namespace: kubecarrier-system, name: us}}"),
			secret("write the Secret us again", "plane", system, "us", "us", "second"),
			put("end the master", "plane", carrier(false)),
			put("make a master again", "plane", carrier(true)),
		},
		Differ: append([]perturb.Field{ofOneRun}, claimsDiffer...),
		Holds:  oneHolder("eu", "us"),
	}
}

// master runs a program with a Master and all loops over the plane's peers.
func master(ctx context.Context, access perturb.Access) error {
	ctx = reaching(ctx, access)
	plane, err := region.APIFor(access("plane"))
	if err != nil {
		return err
	}
	local, err := region.FromConfig(access("plane"))
	if err != nil {
		return err
	}
	m, err := central.NewMaster(plane, func(ctx context.Context) error {
		source, err := central.New(plane, central.Options{Local: local})
		if err != nil {
			return err
		}
		ring, err := region.NewRing(source, region.Options{})
		if err != nil {
			return err
		}
		peers, err := central.NewPeers(source, ring, central.PeersOptions{})
		if err != nil {
			return err
		}
		arbiter, err := claim.New(plane, ring, claim.Options{})
		if err != nil {
			return err
		}
		return startAll(ctx, ring.Start, peers.Start, arbiter.Start)
	}, central.MasterOptions{})
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

// The status of a Peer without regions is the same, whether or not the Peer served a region
// earlier.
func TestPeerThatServedARegion(t *testing.T) {
	perturb.Replay(t, centralPlane(), perturb.Plan{{
		Kind: perturb.WatchLate,
		At:   perturb.Point{Loop: "master", Server: "plane", Verb: "watch", Resource: "leases.coordination.k8s.io", N: 1},
	}})
}
