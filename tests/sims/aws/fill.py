"""Fills a moto server: three instances, where asked for in an autoscaling group, and a key for each of some
users, who may not all do everything. From then on the server checks signatures and policies.

argv: its URL, the authority that signed its certificate, `alone` or `group`. Prints one JSON object.
"""
import json
import ssl
import sys
import urllib.request

import boto3

_, url, authority, gathered = sys.argv
anybody = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
place = {"region_name": "eu-west-1", "endpoint_url": url, "verify": authority}
iam = boto3.client("iam", **anybody, **place)


def key(user, actions):
    iam.create_user(UserName=user)
    statement = {"Effect": "Allow", "Resource": "*", "Action": actions}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=user, PolicyName="fence", PolicyDocument=policy)
    made = iam.create_access_key(UserName=user)["AccessKey"]
    return [made["AccessKeyId"], made["SecretAccessKey"]]


described = "ec2:DescribeInstances"
placed = "autoscaling:DescribeAutoScalingInstances"
leave, rejoin = "autoscaling:EnterStandby", "autoscaling:ExitStandby"
fence = [described, "ec2:StopInstances", "ec2:StartInstances", "ec2:RebootInstances"]
observe = [described, placed, "autoscaling:DescribeAutoScalingGroups", "ec2:TerminateInstances"]
users = {
    "fence": fence,
    "group-fence": [*fence, placed, leave, rejoin],
    "group-reader": [*fence, placed],
    "remove": [described, "ec2:TerminateInstances"],
    "reader": [described],
    "observer": observe,
}
keys = {user: key(user, actions) for user, actions in users.items()}
ec2 = boto3.client("ec2", **anybody, **place)
run = ec2.run_instances(ImageId="ami-12c6146b", MinCount=3, MaxCount=3)["Instances"]
zone = run[0]["Placement"]["AvailabilityZone"]
if gathered == "group":
    groups = boto3.client("autoscaling", **anybody, **place)
    groups.create_launch_configuration(
        LaunchConfigurationName="worker", ImageId="ami-12c6146b", InstanceType="t2.micro"
    )
    groups.create_auto_scaling_group(
        AutoScalingGroupName="workers",
        LaunchConfigurationName="worker",
        MinSize=0,
        MaxSize=5,
        DesiredCapacity=0,
        AvailabilityZones=[zone],
    )
    ids = [one["InstanceId"] for one in run]
    groups.attach_instances(AutoScalingGroupName="workers", InstanceIds=ids)
context = ssl.create_default_context(cafile=authority)
check = urllib.request.Request(url + "/moto-api/reset-auth", data=b"0", method="POST")
check.add_header("Content-Type", "text/plain")
with urllib.request.urlopen(check, context=context) as answer:
    answer.read()
print(json.dumps({"instances": [one["InstanceId"] for one in run], "zone": zone, "keys": keys}))
