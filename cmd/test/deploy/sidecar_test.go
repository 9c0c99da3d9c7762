package deploy

import (
	"path/filepath"
	"slices"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

// parentValues are the values of a chart that adds the sidecar to its own pods.
const parentValues = `
headgate:
  deployment: {enabled: false}
  app: {port: 7000, protocol: h2c, shutdownSeconds: 20}
  fairShare: {capacity: 250, mode: shadow}
  podMonitor: {enabled: true, matchLabels: {app: orders}}
`

func loadParent(t *testing.T) *chart.Chart {
	t.Helper()
	parent, err := loader.LoadDir(filepath.Join("testdata", "parent"))
	if err != nil {
		t.Fatal(err)
	}
	parent.AddDependency(loadChart(t))
	return parent
}

// TestSidecarOfAnotherChart checks the example in _sidecar.tpl: another chart adds the sidecar to
// its own pods.
func TestSidecarOfAnotherChart(t *testing.T) {
	values := valuesOf(t, parentValues)
	delete(values, "app")
	delete(values, "fairShare")
	objects, err := render(loadParent(t), values)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"NOTES.txt", "configmap.yaml", "orders.yaml", "podmonitor.yaml"}; !slices.Equal(names(objects), want) {
		t.Errorf("the rendered templates are %q, want %q", names(objects), want)
	}
	deployment := into[apps.Deployment](t, objects, "orders.yaml")
	pod := deployment.Spec.Template.Spec
	sidecar, own := container(t, pod, "headgate"), container(t, pod, "orders")
	if len(pod.Containers) != 2 || own.Name == "" || *pod.TerminationGracePeriodSeconds != 35 {
		t.Errorf("got the pod %+v, want 2 containers and a grace period of 35 s", pod)
	}
	configMap := into[core.ConfigMap](t, objects, "configmap.yaml")
	if v := volumeOf(t, pod, sidecar, "/etc/headgate"); v.ConfigMap == nil || v.ConfigMap.Name != configMap.Name {
		t.Errorf("the sidecar mounts %+v, want the ConfigMap %s", v.VolumeSource, configMap.Name)
	}
	check(t, configMap.Data["headgate.yaml"])
	if len(deployment.Spec.Template.Annotations) != 1 {
		t.Errorf("got the annotations %v of the pod, want only the checksum", deployment.Spec.Template.Annotations)
	}
}

// volumeOf returns the volume at a path in a container. The mount must not use subPath, because
// such a file does not follow changes of its ConfigMap.
func volumeOf(t *testing.T, pod core.PodSpec, c core.Container, path string) core.Volume {
	t.Helper()
	for _, mount := range c.VolumeMounts {
		if mount.MountPath != path {
			continue
		}
		if mount.SubPath != "" || mount.SubPathExpr != "" || !mount.ReadOnly {
			t.Errorf("%s: got the mount %+v, want read-only and without subPath", path, mount)
		}
		at := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == mount.Name })
		if at < 0 {
			t.Fatalf("the pod has no volume %s", mount.Name)
		}
		return pod.Volumes[at]
	}
	t.Fatalf("no volume is mounted at %s", path)
	return core.Volume{}
}

// TestConfigurationIsMounted checks that the sidecar reads the ConfigMap's file from a folder that
// follows changes.
func TestConfigurationIsMounted(t *testing.T) {
	objects := rendered(t, everything)
	pod := into[apps.Deployment](t, objects, "deployment.yaml").Spec.Template.Spec
	sidecar := container(t, pod, "headgate")
	if want := []string{"proxy", "--config", "/etc/headgate/headgate.yaml"}; !slices.Equal(sidecar.Args, want) || sidecar.Command != nil {
		t.Errorf("the sidecar runs %q %q, want %q", sidecar.Command, sidecar.Args, want)
	}
	configMap := into[core.ConfigMap](t, objects, "configmap.yaml")
	if v := volumeOf(t, pod, sidecar, "/etc/headgate"); v.ConfigMap == nil || v.ConfigMap.Name != configMap.Name {
		t.Errorf("the sidecar mounts %+v, want the ConfigMap %s", v.VolumeSource, configMap.Name)
	}
	if configMap.Immutable != nil {
		t.Error("the ConfigMap is immutable, so a change of values cannot take effect")
	}
}
