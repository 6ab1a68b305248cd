java -Xms4000M -Xmx4000M -XX:+UseG1GC -XX:+AlwaysPreTouch -XX:+UseTransparentHugePages -XX:LargePageSizeInBytes=2M -XX:+UseLargePages -jar server.jar
