exec java -Xmx8g -Xms8g -XX:+UseHugePages -jar app.jar
