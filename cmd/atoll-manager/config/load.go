// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/internal/configfile"
	"github.com/atoll-dev/atoll/region/servicecluster"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/syncer/join"
	workloadv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Error is every fault of a configuration.
type Error = configfile.Error

// Load reads the file at path, sets the defaults and checks the result. It fails with an *Error if the content is wrong,
// and with the error of reading the file otherwise. It does no other I/O.
func Load(path string) (*Configuration, error) {
	var c Configuration
	if err := configfile.Load(path, c.form()); err != nil {
		return nil, err
	}
	return &c, nil
}

// Parse is Load for the content of a file.
func Parse(data []byte) (*Configuration, error) {
	var c Configuration
	if err := configfile.Parse(data, c.form()); err != nil {
		return nil, err
	}
	return &c, nil
}

func (c *Configuration) form() configfile.Form {
	return configfile.Form{Into: c, Complete: c.complete, Check: c.check}
}

// complete sets the defaults.
func (c *Configuration) complete() {
	configfile.Default(&c.Central.Namespace, "kubecarrier-system")
	configfile.Default(&c.Health.Address, ":8081")
	configfile.Default(&c.Log.Format, "json")
	configfile.DefaultDuration(&c.Peers.ProbeInterval, 10*time.Second)
	configfile.DefaultDuration(&c.Fanout.SweepInterval, 30*time.Second)
	configfile.DefaultDuration(&c.ServiceClusters.ProbeInterval, 30*time.Second)
	configfile.DefaultDuration(&c.ServiceClusters.ProbeTimeout, 10*time.Second)
	if c.Clusters != nil {
		configfile.Default(&c.Clusters.TokenNamespace, join.Namespace)
		configfile.DefaultDuration(&c.Clusters.LongestCertificate, 24*time.Hour)
	}
	if c.ClusterDaemonSets != nil {
		configfile.Default(&c.ClusterDaemonSets.ClusterLabel, workloadv1alpha1.ClusterLabel)
	}
	fields := []**bool{&c.Peers.Join, &c.Fanout.AdoptApplied}
	if c.Workloads != nil {
		if c.Workloads.Types == nil {
			c.Workloads.Types = []string{"deployments.apps"}
		}
		fields = append(fields, &c.Workloads.FollowTypes)
	}
	for _, field := range fields {
		if *field == nil {
			*field = new(true)
		}
	}
}

// check returns a line for each fault.
func (c *Configuration) check() configfile.Faults {
	var f configfile.Faults
	f.Type(c.TypeMeta, APIVersion, Kind)
	if msgs := validation.IsDNS1123Label(c.Central.Namespace); len(msgs) > 0 {
		f.Add("central.namespace", fmt.Sprintf("%q is not the name of a namespace", c.Central.Namespace), "a DNS label in lower case, such as kubecarrier-system")
	}
	if c.Identity != "" && len(validation.IsDNS1123Subdomain(c.Identity)) > 0 {
		f.Add("identity", fmt.Sprintf("%q is no name", c.Identity), "a DNS name in lower case, such as that of the Pod; or leave it out")
	}
	f.Between("peers.probeInterval", c.Peers.ProbeInterval, time.Second, time.Hour)
	f.Programs("peers.execPlugins", c.Peers.ExecPlugins)
	f.Between("fanout.sweepInterval", c.Fanout.SweepInterval, time.Second, time.Hour)
	f.Between("serviceClusters.probeInterval", c.ServiceClusters.ProbeInterval, time.Second, time.Hour)
	f.Between("serviceClusters.probeTimeout", c.ServiceClusters.ProbeTimeout, time.Second, time.Minute)
	prefixes(&f, "serviceClusters.allowAddresses", c.ServiceClusters.AllowAddresses)
	prefixes(&f, "serviceClusters.denyAddresses", c.ServiceClusters.DenyAddresses)
	if c.Clusters != nil {
		if msgs := validation.IsDNS1123Label(c.Clusters.TokenNamespace); len(msgs) > 0 {
			f.Add("clusters.tokenNamespace", fmt.Sprintf("%q is not the name of a namespace", c.Clusters.TokenNamespace), "a DNS label in lower case, such as "+join.Namespace)
		}
		f.Between("clusters.longestCertificate", c.Clusters.LongestCertificate, time.Hour, 365*24*time.Hour)
	}
	if c.Workloads != nil {
		for i, name := range c.Workloads.Types {
			at := fmt.Sprintf("workloads.types[%d]", i)
			switch {
			case KindOf(name) == nil:
				f.Add(at, fmt.Sprintf("%q is not a type of Kubernetes that is divided", name), strings.Join(divided(), ", "))
			case slices.Contains(c.Workloads.Types[:i], name):
				f.Add(at, fmt.Sprintf("%q is there twice", name), "each type once")
			}
		}
		for i, path := range c.Workloads.TypeFiles {
			if path == "" {
				f.Add(fmt.Sprintf("workloads.typeFiles[%d]", i), "is empty", "the path of a file")
			}
		}
	}
	if c.ClusterDaemonSets != nil {
		if msgs := validation.IsQualifiedName(c.ClusterDaemonSets.ClusterLabel); len(msgs) > 0 {
			f.Add("clusterDaemonSets.clusterLabel", fmt.Sprintf("%q is not the key of a label", c.ClusterDaemonSets.ClusterLabel), "PREFIX/NAME, such as "+workloadv1alpha1.ClusterLabel)
		}
	}
	f.Log(c.Log.Format, c.Log.Level)
	f.Address("health.address", c.Health.Address)
	return f
}

// kinds returns the kinds of the types in workloads.types.
func kinds() []splitter.Kind {
	return []splitter.Kind{
		splitter.CronJobs(), splitter.DaemonSets(), splitter.Deployments(), splitter.Jobs(), splitter.ReplicaSets(),
		splitter.ReplicationControllers(), splitter.StatefulSets(),
	}
}

// divided returns the names of these types.
func divided() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.Resource().GroupResource().String())
	}
	return names
}

// KindOf returns the kind of a type in Workloads.Types; nil for another name.
func KindOf(name string) splitter.Kind {
	if i := slices.Index(divided(), name); i >= 0 {
		return kinds()[i]
	}
	return nil
}

// Addresses returns the addresses to which probes of ServiceClusters may connect.
func (s *ServiceClusters) Addresses() servicecluster.Addresses {
	var f configfile.Faults
	return servicecluster.Addresses{Allow: prefixes(&f, "", s.AllowAddresses), Deny: prefixes(&f, "", s.DenyAddresses)}
}

func prefixes(f *configfile.Faults, path string, texts []string) (all []netip.Prefix) {
	for i, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix != prefix.Masked() {
			f.Add(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%q is no network", text), "ADDRESS/BITS, without further bits in ADDRESS, such as 10.96.0.0/12")
			continue
		}
		all = append(all, prefix)
	}
	return all
}
