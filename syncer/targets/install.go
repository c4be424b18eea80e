// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
)

// Install describes the installation of a syncer inside the cluster of one SyncTarget.
type Install struct {
	// Target is the name of the SyncTarget. Required; a Controller sets it.
	Target string
	// Upstream identifies the upstream among all that sync to the same cluster: see syncer.Options.Upstream. Required;
	// a Controller sets it to the UID of the upstream's namespace kube-system.
	Upstream string
	// Kubeconfig is the kubeconfig, in YAML, with which the syncer reaches the upstream from inside the cluster. It
	// contains all certificates and credentials, and should grant syncer.UpstreamRights only. Required.
	Kubeconfig []byte
	// Image is the container image of a program that takes the arguments of examples/syncer. Required.
	Image string
	// Types are the types to sync. The syncer gets rights on these types only. Nil: syncer.WorkloadTypes. Empty is an
	// error.
	Types []schema.GroupResource
	// Permit lists the powers that authors of upstream objects may have: see syncer.Options.Permit. A type that needs
	// another Power is an error.
	Permit []syncer.Power
	// Heartbeat is how often the syncer writes its heartbeat. Zero: 20 s. A Controller sets it to its own
	// Heartbeat.
	Heartbeat time.Duration
	// Unscheduled is how often the syncer counts pods without a node: see syncer.Options.Unscheduled. Zero: never;
	// otherwise the syncer gets syncer.UnscheduledRights too.
	Unscheduled time.Duration
	// Capacity is how often the syncer reads the cluster's nodes: see syncer.Options.Capacity. Negative: never, and it
	// gets no right to list nodes.
	Capacity time.Duration
}

// InstallationLabel is the label of all installed objects. Its value is unique to the upstream and the SyncTarget.
const InstallationLabel = "syncer.atoll.dev/installation"

// UpstreamKubeconfig is the path at which the installed program finds Install.Kubeconfig. The file changes when
// Install.Kubeconfig changes.
const UpstreamKubeconfig = upstreamDir + "/" + kubeconfigKey

const (
	upstreamDir    = "/var/run/atoll/upstream"
	upstreamSecret = "upstream"
	program        = "syncer"
)

// name returns the name of the installation's namespace, ClusterRole and ClusterRoleBinding. No other installation
// has this name.
func (in Install) name() string {
	readable := strings.Trim(strings.NewReplacer(".", "-", "_", "-").Replace(strings.ToLower(in.Target)), "-")
	readable = strings.TrimRight(readable[:min(len(readable), 30)], "-")
	return synctarget.InstallationPrefix + readable + "-" + in.owner()[:10]
}

func (in Install) owner() string { return synctarget.Owner(in.Upstream, in.Target) }

func (in Install) check() error {
	var wrong []error
	if problems := validation.IsValidLabelValue(in.Target); in.Target == "" || len(problems) > 0 {
		wrong = append(wrong, fmt.Errorf("install: Target %q: want the name of a SyncTarget that is a valid label value", in.Target))
	}
	if in.Upstream == "" {
		wrong = append(wrong, errors.New("install: Upstream is empty: want the UID of the upstream's namespace kube-system"))
	}
	if len(in.Kubeconfig) == 0 {
		wrong = append(wrong, errors.New("install: Kubeconfig is empty: want the kubeconfig with which the syncer reaches the upstream"))
	}
	if in.Image == "" {
		wrong = append(wrong, errors.New("install: Image is empty: want the image of a program that takes the arguments of examples/syncer"))
	}
	if in.Types != nil && len(in.Types) == 0 {
		wrong = append(wrong, errors.New("install: Types is empty: name each type, or leave it nil for WorkloadTypes"))
	}
	for i, gr := range in.Types {
		if gr.Resource == "" || strings.Contains(gr.Resource+gr.Group, "*") {
			wrong = append(wrong, fmt.Errorf("install: Types[%d] is %q: name each type", i, gr.String()))
		}
	}
	for i, p := range in.Permit {
		if _, err := syncer.ParsePower(string(p)); err != nil {
			wrong = append(wrong, fmt.Errorf("install: Permit[%d]: %w", i, err))
		}
	}
	if err := syncer.CheckTypes(in.Permit, in.Types...); err != nil {
		wrong = append(wrong, fmt.Errorf("install: Types names what Permit lacks: leave it out, or add the permit: %w", err))
	}
	return errors.Join(wrong...)
}
