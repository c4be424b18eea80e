// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"fmt"
	"slices"
	"strings"

	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/atoll-dev/atoll/region"
)

// Names of properties of ClusterProfiles. A Publisher writes them and a Source reads them.
const (
	// RegionsProperty lists the regions of a peer as NAME.PROVIDER, separated by commas. More regions than the value of
	// a property can hold continue in "2.regions.atoll.dev" and so on.
	RegionsProperty = "regions.atoll.dev"
	// UIDProperty is the UID of the namespace kube-system of the peer. A Source gives it to region.Peer.UID: other clusters
	// are then refused.
	UIDProperty = "uid.atoll.dev"
	// ClusterIDProperty is the ID of the cluster in its ClusterSet, as the ClusterProperty of this name in the cluster.
	ClusterIDProperty = "cluster.clusterset.k8s.io"
	// ClusterSetProperty names the ClusterSet, as the ClusterProperty of this name in the cluster.
	ClusterSetProperty = "clusterset.k8s.io"
)

// Field selects a value of a ClusterProfile. Exactly one of its fields is set.
type Field struct {
	Property string // the name of a property in the status
	Label    string // the key of a label
	Value    string // the same value for all profiles
}

// of returns the value in p.
func (f Field) of(p *inventory.ClusterProfile) (string, error) {
	switch {
	case f.Property != "":
		if v, ok := property(p, f.Property); ok {
			return v, nil
		}
		return "", &region.FieldError{Field: "status.properties[" + f.Property + "]", Reason: "is missing", Accept: "a part of the name of a region"}
	case f.Label != "":
		if v, ok := p.Labels[f.Label]; ok {
			return v, nil
		}
		return "", &region.FieldError{Field: "metadata.labels[" + f.Label + "]", Reason: "is missing", Accept: "a part of the name of a region"}
	default:
		return f.Value, nil
	}
}

// check returns why f does not select a value.
func (f Field) check() error {
	set := 0
	for _, s := range []string{f.Property, f.Label, f.Value} {
		if s != "" {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("has %d of Property, Label and Value: set one", set)
	}
	return nil
}

// regionsOf returns the regions of the peer that p describes.
func (o *Options) regionsOf(p *inventory.ClusterProfile) ([]region.Key, error) {
	if o.Region == (Field{}) {
		return listedRegions(p)
	}
	provider, err := o.Provider.of(p)
	if err != nil {
		return nil, err
	}
	name, err := o.Region.of(p)
	if err != nil {
		return nil, err
	}
	key := region.Key{Provider: provider, Name: name}
	if err := key.Validate(); err != nil {
		return nil, &region.FieldError{Field: "status.properties or metadata.labels", Reason: "is not a region", Accept: "DNS-1123 names", Err: err}
	}
	return []region.Key{key}, nil
}

// listedRegions returns the regions in the properties that a Publisher writes.
func listedRegions(p *inventory.ClusterProfile) ([]region.Key, error) {
	var keys []region.Key
	for n := 1; ; n++ {
		name := regionsProperty(n)
		list, ok := property(p, name)
		if !ok {
			slices.SortFunc(keys, region.Key.Compare)
			return slices.Compact(keys), nil
		}
		for text := range strings.SplitSeq(list, ",") {
			key, err := region.ParseKey(text)
			if err != nil {
				return nil, &region.FieldError{Field: "status.properties[" + name + "]", Reason: "is not a list of regions",
					Accept: "NAME.PROVIDER, separated by commas", Err: err}
			}
			keys = append(keys, key)
		}
	}
}

// regionsProperty returns the name of the property with the n-th part of the list.
func regionsProperty(n int) string {
	if n == 1 {
		return RegionsProperty
	}
	return fmt.Sprintf("%d.%s", n, RegionsProperty)
}
