"""What boto3 sees and does in a moto server.

argv: its URL, the authority that signed its certificate, access key id, secret key, what, instance id. What
is `state` or `terminate`, and prints the state's name; or `group`, and prints `PLACE desired NUMBER`: where
the instance's group has it, and how many it wants.
"""
import sys

import boto3

_, url, authority, key, secret, what, instance = sys.argv
who = {"aws_access_key_id": key, "aws_secret_access_key": secret}
place = {"region_name": "eu-west-1", "endpoint_url": url, "verify": authority}
if what == "group":
    groups = boto3.client("autoscaling", **who, **place)
    [member] = groups.describe_auto_scaling_instances(InstanceIds=[instance])["AutoScalingInstances"]
    [group] = groups.describe_auto_scaling_groups()["AutoScalingGroups"]
    print(f"{member['LifecycleState']} desired {group['DesiredCapacity']}")
    sys.exit()
ec2 = boto3.client("ec2", **who, **place)
if what == "terminate":
    ec2.terminate_instances(InstanceIds=[instance])
print(ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]["State"]["Name"])
